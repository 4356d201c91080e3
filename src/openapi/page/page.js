// Swagger UI has dark colours, but asks the system for its preference only in a top bar that this page does not have.
const dark = matchMedia('(prefers-color-scheme: dark)')
const followSystem = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', followSystem)
followSystem()

SwaggerUIBundle({
  url: '/api/v3/schema/',
  dom_id: '#api',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  requestSnippetsEnabled: true,
  tryItOutEnabled: false,
  // Otherwise the page would send the description to a validator on the internet.
  validatorUrl: null,
})
