/** The two pages that users see. They need no script. */

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character] ?? '')

export const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 24rem; margin: 4rem auto } input, button { font: inherit }</style>
</head>
<body><main><h1>${escaped(title)}</h1>
${body}
</main></body>
</html>
`

export const logInPage = (client: string, isWrong: boolean): string =>
  page(
    `Sign in to ${client}`,
    `${isWrong ? '<p role="alert">User name or password is wrong.</p>' : ''}<form method="post">
<p><label>User name<br><input name="username" autocomplete="username" required autofocus></label></p>
<p><label>Password<br><input name="password" type="password" autocomplete="current-password" required></label></p>
<p><button name="answer" value="sign-in">Sign in</button></p>
</form>`,
  )

export const consentPage = (client: string, title: string, scopes: readonly string[]): string =>
  page(
    title,
    `<form method="post">
<p>${escaped(client)} asks for:</p>
<ul>${scopes.map((scope) => `<li>${escaped(scope)}</li>`).join('')}</ul>
<p><button name="answer" value="allow">Allow</button> <button name="answer" value="refuse">Refuse</button></p>
</form>`,
  )
