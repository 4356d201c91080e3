import type { Need } from '../http/documented.ts'
import type { Access } from '../permissions.ts'

/** Sentences for the description of an operation: the callers who may call it. */
export function sentencesOf(permission: Access, alsoNeeds: readonly Need[]): string {
  const sentence = sentenceOf(permission)
  if (alsoNeeds.length === 0) return sentence
  const lines = alsoNeeds.map(({ permission, when }) => `- ${oneOf(permission)}: ${when}`)
  return `${sentence} Some requests need more:\n\n${lines.join('\n')}`
}

function sentenceOf(permission: Access): string {
  switch (permission) {
    case 'anyone':
      return 'Anyone may call it, without an access token.'
    case 'authenticated':
      return 'Any authenticated user may call it.'
    case 'superuser':
      return 'Only superusers may call it.'
  }
  return `Needs the permission ${oneOf(permission)}.`
}

const oneOf = (permission: Need['permission']): string =>
  [permission]
    .flat()
    .map((name) => `\`${name}\``)
    .join(' or ')

/** The same for programs, beside `x-permission`. */
export const toAlsoNeeds = (alsoNeeds: readonly Need[]) =>
  alsoNeeds.map(({ permission, when }) => ({ permission: [permission].flat(), when }))
