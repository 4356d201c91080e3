// Swagger UI has dark colours, but asks the system for its preference only in a top bar that this page does not have.
const dark = matchMedia('(prefers-color-scheme: dark)')
const followSystem = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', followSystem)
followSystem()

// It has a link in the button of each operation. The address follows the button, too.
const WithoutLink =
  (_Link, { React }) =>
  ({ text }) =>
    React.createElement('span', null, text)

// It names neither fields nor parts, leaves out a level of headings, and the keyboard cannot scroll its examples.
const api = document.querySelector('#api')
const complete = () => {
  for (const part of api.querySelectorAll('.information-container, .scheme-container'))
    Object.assign(part, { role: 'region', ariaLabel: part.innerText.split('\n')[0] })
  for (const heading of api.querySelectorAll('h3, h4, h5')) heading.ariaLevel = heading.tagName[1] - 1
  for (const field of api.querySelectorAll(':is(input, select, textarea):not([aria-label])'))
    field.ariaLabel = field.closest('tr')?.querySelector('.parameter__name')?.firstChild.textContent ?? 'Request body'
  for (const example of api.querySelectorAll('pre:not([tabindex])')) example.tabIndex = 0
}
new MutationObserver(complete).observe(api, { childList: true, subtree: true })

SwaggerUIBundle({
  url: '/api/v3/schema/',
  dom_id: '#api',
  plugins: [() => ({ wrapComponents: { DeepLink: WithoutLink } })],
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  requestSnippetsEnabled: true,
  tryItOutEnabled: false,
  // Otherwise the page would send the description to a validator on the internet.
  validatorUrl: null,
})
