import type { Api } from '../http/api.ts'
import { html } from '../http/html.ts'
import { icon } from '../http/icon.ts'
import { prefersHtml } from '../http/not-found.ts'
import { htmlPage, plainPolicy } from '../http/page.ts'
import { applyPath, basePath, dashboardPath, docsPath, faviconPath, homePath, readyPath, schemaPath } from '../paths.ts'

/**
 * GET /: the name of the service, and the addresses of all else, for a person who opens it. It needs no token, so it has no facts
 * about the installation.
 */

/** Each route has a `config` of its own, because helmet writes into it. */
const open = () => ({ config: { permission: 'anyone' } as const, helmet: plainPolicy })

const about = {
  name: 'Gatewright',
  description: 'Identity management: an application and its provider in one call, applied in one transaction.',
  docs: docsPath,
  schema: schemaPath,
  dashboard: dashboardPath,
  health: readyPath,
}

export function homeRoutes(app: Api): void {
  app.get(homePath, open(), async ({ headers }, reply) => {
    reply.header('Vary', 'Accept')
    if (!prefersHtml({ headers })) return reply.type('application/json; charset=utf-8').send(about)
    const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
    return reply.type('text/html; charset=utf-8').send(homePage(scheme, headers.host))
  })
  // Browsers request the second one when a page names no icon, such as one that shows JSON.
  for (const path of [faviconPath, `${basePath}/favicon.ico`])
    app.get(path, open(), async (_request, reply) =>
      reply.type('image/svg+xml').header('Cache-Control', 'public, max-age=86400').send(icon),
    )
}

/** A host name or an address, with a port. A text of another form is not repeated. */
const plainHost = /^[\w.-]{1,253}(:\d{1,5})?$|^\[[\da-f:.]{2,45}\](:\d{1,5})?$/i

function homePage(scheme: 'http' | 'https', host = ''): string {
  const origin = plainHost.test(host) ? `${scheme}://${host}` : '<ADDRESS>'
  return htmlPage({
    title: 'Gatewright',
    heading: 'Gatewright',
    subtitle: 'Identity management for people who deploy',
    content: html`<p>A pipeline sends an application and its provider in one call. They are applied in one transaction, or not at all.</p>
<dl>
<dt><a href="${docsPath}">Documentation</a></dt><dd>every operation, to read and to try</dd>
<dt><a href="${schemaPath}">OpenAPI</a></dt><dd>the same for programs, to generate clients from</dd>
<dt><a href="${dashboardPath}">Dashboard</a></dt><dd>what runs, what failed and why, behind a login</dd>
<dt><a href="${readyPath}">Health</a></dt><dd>whether this API can serve</dd>
</dl>
<h2>A first call</h2>
<p>With an access token in <code>GATEWRIGHT_TOKEN</code>. The first start of an installation makes one for its admin, in <code>.data/admin-token</code>.</p>
<pre tabindex="0"><code>${firstCall(origin)}</code></pre>
<p><code>applied</code> says whether it was applied, and <code>logs</code> what was done. <code>Content-Location</code> names the run, which has the details. The same call again changes nothing.</p>`,
    width: 'wide',
    icon: faviconPath,
  })
}

const firstCall = (origin: string): string => `curl -i -X PUT \\
  ${origin}${applyPath} \\
  -H "Authorization: Bearer $GATEWRIGHT_TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{
    "app": {"name": "Wiki", "slug": "wiki"},
    "provider_model": "service_providers_oauth2.oauth2provider",
    "provider": {
      "name": "wiki",
      "authorization_flow": "6f7e0000-0000-4000-8000-000000000102"
    }
  }'`
