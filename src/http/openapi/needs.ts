import type { Access, Permission } from '../../permissions.ts'

/** What an operation needs for some of what it does: one of these permissions, or a superuser. */
export type Need = {
  readonly permission: 'superuser' | Permission | readonly Permission[]
  /** When: `for another user`, `to add members`. */
  readonly when: string
}

/** Who may call an operation, in the words of its description. */
export function sentencesOf(permission: Access, alsoNeeds: readonly Need[]): string {
  const sentence = sentenceOf(permission)
  if (alsoNeeds.length === 0) return sentence
  const lines = alsoNeeds.map(({ permission, when }) => `- ${oneOf(permission)}: ${when}`)
  return `${sentence} Some of it needs more:\n\n${lines.join('\n')}`
}

function sentenceOf(permission: Access): string {
  switch (permission) {
    case 'anyone':
      return 'Anyone may call it, without a token.'
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

/** The same for machines, beside `x-permission`. */
export const toAlsoNeeds = (alsoNeeds: readonly Need[]) =>
  alsoNeeds.map(({ permission, when }) => ({ permission: [permission].flat(), when }))
