/** Entries of documents, by the names of their objects. */

type Attrs = Record<string, unknown>

const named =
  <Field extends string>(model: string, field: Field) =>
  <Given extends object = Attrs>(name: string, attrs: Given = {} as Given) => ({
    model,
    identifiers: { [field]: name } as Record<Field, string>,
    attrs,
  })

export const aFlow = named('service_flows.flow', 'slug')
export const aGroup = named('service_core.group', 'name')
export const aKeyPair = named('service_crypto.certificatekeypair', 'name')
export const aRole = named('service_rbac.role', 'name')
export const aToken = named('service_core.token', 'identifier')
export const aUser = named('service_core.user', 'username')
export const anApplication = named('service_core.application', 'slug')
export const aProvider = <Given extends object = Attrs>(kind: string, name: string, attrs?: Given) =>
  named(`service_providers_${kind}.${kind}provider`, 'name')(name, attrs)
