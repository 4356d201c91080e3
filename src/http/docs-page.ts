import { icon } from './dashboard/pages.ts'

/** The page that shows the API's description to people: Swagger UI, from this host alone. */

export const docsPath = '/docs'

/** Swagger UI's own style sheet draws its icons from `data:` addresses. */
export const docsHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Cache-Control': 'no-cache',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gatewright API</title>
<link rel="icon" href="${docsPath}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${docsPath}/swagger-ui.css">
<link rel="stylesheet" href="${docsPath}/page.css">
</head>
<body>
<div id="api"></div>
<noscript>This page needs JavaScript. The description itself is at <a href="SCHEMA">SCHEMA</a>.</noscript>
<script src="${docsPath}/swagger-ui-bundle.js"></script>
<script src="${docsPath}/page.js"></script>
</body>
</html>
`

const style = `body { margin: 0 }
.swagger-ui .info { margin: 2rem 0 1.5rem }
.swagger-ui .scheme-container { margin: 0 0 1rem; padding: 1rem 0; box-shadow: none; border-bottom: 1px solid #d8dde7 }
.swagger-ui .opblock .opblock-summary-path { max-width: none }
noscript { display: block; padding: 2rem; font-family: sans-serif }
`

/** `validatorUrl: null`: otherwise it would show the description to a site on the internet. */
const script = `SwaggerUIBundle({
  url: 'SCHEMA',
  dom_id: '#api',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  requestSnippetsEnabled: true,
  tryItOutEnabled: false,
  validatorUrl: null,
})
`

export type OwnFile = { readonly type: string; readonly text: string }

/** What the page is made of beside Swagger UI's files, by name below `/docs/`. */
export const ownFiles = (schemaPath: string): ReadonlyMap<string, OwnFile> =>
  new Map([
    ['', { type: 'text/html; charset=utf-8', text: page.replaceAll('SCHEMA', schemaPath) }],
    ['page.css', { type: 'text/css; charset=utf-8', text: style }],
    ['page.js', { type: 'text/javascript; charset=utf-8', text: script.replaceAll('SCHEMA', schemaPath) }],
    ['icon.svg', { type: 'image/svg+xml', text: icon }],
  ])
