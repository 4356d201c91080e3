/** The output in place of a value that may not be shown. */
export const hidden = '********'

/** Hides the user and password in URLs of a text: some services take a token in the place of the user. */
export const withoutPasswords = (text: string): string =>
  text.replace(/([a-z][a-z\d+.-]*:\/\/)[^\s/?#"'<>]+@/gi, `$1${hidden}@`)
