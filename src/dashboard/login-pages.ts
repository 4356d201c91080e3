import { html } from '../http/html.ts'
import { type Actor, allows } from '../permissions.ts'
import { loginPath, logoutPath, nowPath } from './addresses.ts'
import { page } from './frame.ts'

/**
 * @param alert the reason why the last login was refused, one sentence
 * @param next the address to which a login leads
 */
export const loginPage = (alert: string | null, next: string): string =>
  page({
    title: 'Log in',
    heading: 'Log in with an access token',
    actor: null,
    width: 'narrow',
    content: html`${alert !== null && html`<p class="alert" role="alert" id="alert">${alert}</p>`}
<form method="post" action="${loginPath}${next !== nowPath && `?next=${encodeURIComponent(next)}`}">
<label for="access_token">Access token</label>
<input id="access_token" name="access_token" type="password" required maxlength="512" autofocus autocomplete="current-password" autocapitalize="none" spellcheck="false"${alert !== null && html` aria-invalid="true"`} aria-describedby="${alert !== null && 'alert '}hint">
<p class="quiet" id="hint">The token of a superuser, or of a user who may view the queue. It is not stored. The session ends after 8 hours, or when the token is no longer valid.</p>
<button type="submit">Log in</button>
</form>`,
  })

export const logoutPage = (actor: Actor): string =>
  page({
    title: 'Log out',
    actor,
    within: logoutPath,
    width: 'narrow',
    content: html`<p>You are logged in as ${actor.username}. ${allows(actor, 'manage_queue') ? 'You may view the queue, pause and resume it, and clear its failed jobs.' : 'You may view the queue, but not act on it.'}</p>
<form method="post" action="${logoutPath}" class="choice"><a class="button" href="${nowPath}">Cancel</a><button type="submit">Log out</button></form>`,
  })
