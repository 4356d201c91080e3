/** What stands in output for what may not be shown. */
export const hidden = '********'

/** Hides who logs in by the URLs of a text: some services take a token in the place of the user. */
export const withoutPasswords = (text: string): string =>
  text.replace(/([a-z][a-z\d+.-]*:\/\/)[^\s/?#"'<>]+@/gi, `$1${hidden}@`)
