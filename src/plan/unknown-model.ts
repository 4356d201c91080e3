import { nearest } from '../messages.ts'

/** A model of the registry; a provider has a kind. */
type Known = { readonly name: string; readonly provider?: { readonly kind: string } }

const lastPart = (name: string): string => name.slice(name.lastIndexOf('.') + 1)

/** The model that was probably meant: the name is its kind, its last part, has another prefix, or is similar. */
function meantModel(sent: string, models: readonly Known[]): string | undefined {
  if (sent.length > 100) return undefined
  const name = sent.toLowerCase()
  const short = new Map<string, string>()
  for (const { name, provider } of models) {
    short.set(lastPart(name), name)
    if (provider !== undefined) short.set(provider.kind, name)
  }
  const names = models.map((each) => each.name)
  return (
    short.get(name) ?? short.get(lastPart(name)) ?? nearest(sent, names) ?? short.get(nearest(name, short.keys()) ?? '')
  )
}

export function unknownModel(sent: string, models: readonly Known[]): string {
  const meant = meantModel(sent, models)
  return meant === undefined ? 'Unknown model.' : `Unknown model. Did you mean ${meant}?`
}

/** The message for an unknown `provider_model`. */
export function unknownKind(sent: unknown, kinds: readonly Known[]): string {
  const meant = typeof sent === 'string' ? meantModel(sent, kinds) : undefined
  const all = `Must be one of: ${kinds.map(({ name }) => name).join(', ')}.`
  return meant === undefined ? all : `${all} Did you mean ${meant}?`
}
