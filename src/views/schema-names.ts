/** The name of a schema in the API's description: `ReadOauth2Provider` of `read_oauth2_provider`. */
export const schemaName = (words: string): string =>
  words
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

/** A discriminator for the API's description: the value of a property that stands for each named schema. */
export const discriminatorOf = (
  propertyName: string,
  schemas: readonly (readonly [value: string, name: string])[],
) => ({
  propertyName,
  mapping: Object.fromEntries(schemas.map(([value, name]) => [value, `#/components/schemas/${name}`])),
})
