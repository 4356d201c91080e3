import { documentLimits } from '../document/document.ts'
import type { FieldPath } from '../errors.ts'
import { expiresOf } from '../models/overlap.ts'
import {
  type Actor,
  allows,
  allowsSome,
  ownerOf,
  permissionOf,
  permissionsOf,
  type Right,
  rightName,
  stacksOf,
} from '../permissions.ts'
import type { LabelledRow, LeftEmpty, Orphan } from '../plan/claims.ts'
import { type Effect, isOwn, mayKnow, verbOf } from '../plan/effect.ts'
import type { Conditions, Mode } from '../plan/engine.ts'
import { nameSent, skippedLine } from '../plan/step.ts'
import type { AnnouncedGains, Gains } from '../rights/gains.ts'
import { ownersText } from '../rights/policy.ts'
import { type Difference, differences, type Sides } from '../sides.ts'
import { type Finding, type Given, keyOf, type Objection, type Skipped } from './finding.ts'

/** The sentences about findings and objections, for logs and answers. They are made here and nowhere else. */

/** The most items of a kind in an answer. */
export const maxListed = 20

/** A row in messages: `flow "login"`. A row that the caller may not view has only the name that the document sent. */
export const rowName = ({ step, label, isHidden }: Pick<Effect, 'step' | 'label' | 'isHidden'>): string =>
  isHidden ? nameSent(step) : `${step.model.displayName} ${JSON.stringify(label)}`

export const nameOf = ({ model, name }: LabelledRow): string => `${model.displayName} ${JSON.stringify(name)}`

/**
 * An objection, without the last full stop.
 *
 * @param who `You`; by default the user who is denied, by name
 */
export function textsOf(objection: Objection, who = 'actor' in objection ? objection.actor.username : ''): string[] {
  switch (objection.is) {
    case 'denied':
      return [`${denied(who, objection)}${ofAuthors(objection.actor)}`]
    case 'unseen': {
      const { what, needed, actor } = objection
      return [`${who} may not look up ${what}: ${needed} is missing${ofAuthors(actor)}`]
    }
    case 'claimed':
      return [claimed(who, objection)]
    case 'unstacked': {
      const names = [...(stacksOf(objection.actor) ?? [])].filter((name) => name !== '').sort()
      if (names.length === 0)
        return [`${who} may write no document: the tokens behind this call are bound to different stacks`]
      const stacks = names.map((name) => JSON.stringify(name))
      return [`${who} may write by documents of stack ${stacks.join(', ')} only: the token is bound to it`]
    }
    case 'gone':
      return ['the submitter is gone or no longer active']
    case 'missing':
      return [`There is no such ${objection.step.model.displayName}`]
    case 'exists':
      return [`${rowName(objection.effect)} is there already, and If-None-Match: * allows only to create`]
    case 'changed':
      return [
        `${rowName(objection.effect)} changed after the plan${objection.by === undefined ? '' : `: ${objection.by}`}.`,
      ]
    case 'fewer':
      return [`the plan has ${objection.count} more to delete than there is now.`]
    case 'invalid': {
      const { list, unlisted } = objection.errors
      const inPath = (path: FieldPath) => (path.length > 0 ? `${path.join('.')}: ` : '')
      return [
        ...list.map(({ path, message }) => `${inPath(path)}${message}`),
        ...(unlisted === undefined ? [] : [unlisted]),
      ]
    }
    case 'both': {
      const { step } = objection.effect
      const both = `${rowName(objection.effect)} and ${step.model.displayName} ${JSON.stringify(step.was)} both exist`
      return [`${both}, so nothing can be renamed: remove \`was\`, or delete one of them`]
    }
    case 'owned':
      return [ofAnother(objection)]
    case 'followed':
      return [`${objection.what === 'gains' ? 'who gains rights' : 'what other stacks lose'} changed after the plan.`]
    case 'grants':
      return [unless('grants', gainsText(objection.gains, objection.actor, 'would gain'))]
    case 'left':
      return [leftOver(objection)]
    case 'stacked': {
      const { effect, from, stack, going } = objection
      const belongs = `${whatIsTaken(effect, going)} belongs to stack ${JSON.stringify(from)}, and the request is of stack ${JSON.stringify(stack)}`
      return [unless('takeover', belongs)]
    }
    case 'broken':
      return [`${broken(objection.effect, objection.count)} could not be written: ${why(objection)}`]
    case 'stated':
      return [objection.text]
    default:
      return objection satisfies never
  }
}

/** A row that another stack loses. @param going the row that goes with a deleted one */
export const whatIsTaken = (effect: Effect, going: string | undefined): string =>
  going === undefined ? rowName(effect) : `${going}, which goes with ${rowName(effect)},`

/** The next steps, where the sentences of the objections do not have them. */
export function hintsOf(objections: readonly Objection[]): string[] {
  const isOfPlan = objections.some(({ is }) => is === 'changed' || is === 'fewer' || is === 'followed')
  const stated = objections.flatMap((each) => (each.is === 'stated' && each.hint !== undefined ? [each.hint] : []))
  return [...(isOfPlan ? ['Plan again, and review that plan.'] : []), ...stated]
}

/** The hint that a former document takes the rights of two users. */
const ofAuthors = ({ authors }: Actor): string =>
  authors === undefined ? '' : ' (the document of a former run takes what both its submitter and you may do)'

/**
 * The text of a denial. An actor without any permission for rows of the model, or for this one, gets the same text whether the
 * row exists or not: it has no verb and no stored name. Nor has the text about a row whose name the document did not send.
 */
function denied(who: string, { actor, effect, why, follows }: Extract<Objection, { is: 'denied' }>): string {
  const { model } = effect.step
  const [mayAny, mayThis] = knowledgeOf(actor, effect)
  if (mayThis && !(follows && effect.isHidden)) return `${who} may not ${verbOf(effect)} ${rowName(effect)}: ${why}`
  if (follows === true) return `${who} may not delete the ${model.displayName} that follows from this: ${why}`
  const missing = `the permission add_${model.resource}, change_${model.resource} or delete_${model.resource} is missing`
  return `${who} may not write ${nameSent(effect.step)}: ${mayAny ? why : missing}`
}

/** Whether the actor has any permission for rows of the model, and whether it has one for this row. */
function knowledgeOf(actor: Actor, effect: Effect): [boolean, boolean] {
  const { model } = effect.step
  if (isOwn(actor, effect)) return [true, true]
  const mayAny = permissionsOf(model.resource).some((each) => allowsSome(actor, each))
  if (model.isLabelled !== true || effect.row === undefined) return [mayAny, mayAny]
  return [mayAny, mayKnow(actor, model, effect.row.owner)]
}

/** The text of a claim, with the owners that the caller may name. */
function claimed(who: string, { owner, owners, step }: Extract<Objection, { is: 'claimed' }>): string {
  const what = `${who} may not write ${step === undefined ? 'rows' : nameSent(step)} of owner ${JSON.stringify(owner)}`
  return owners.length === 0 ? what : `${what}: the permissions hold for rows of ${ownersText(owners)} only`
}

/** @param word a word of `Gatewright-Allow` */
const unless = (word: keyof Conditions['allow'], conflict: string): string =>
  `${conflict}. Gatewright-Allow: ${word} applies it all the same`

/** The caller may write rows of that owner: without it, the refusal is a 403. A takeover would take the row from its team. */
function ofAnother(objection: Extract<Objection, { is: 'owned' }>): string {
  const { owner } = objection.ownership
  const conflict = anothers(objection)
  if (owner === null) return unless('takeover', conflict)
  if (objection.effect.step.heldBy !== undefined)
    return unless('takeover', `${conflict}. Let it stay without its stack (gatewright stack forget)`)
  const label = JSON.stringify(owner)
  const advice = `Send it as owner ${label}: \`owner: ${label}\` in the file, or Gatewright-Owner`
  return `${conflict}. ${advice}. Gatewright-Allow: takeover takes it from that owner`
}

function anothers({ effect, ownership, label }: Extract<Objection, { is: 'owned' }>): string {
  const { owner, made } = ownership
  const what = rowName(effect)
  if (owner === null) return `${what} has no owner, and was made ${made}`
  const { owner: own, heldBy } = effect.step
  const asking =
    heldBy !== undefined ? 'its stack has it under' : `the ${own === undefined ? 'request' : 'entry'} names`
  const asked = `${asking} ${label === null ? 'no owner' : `owner ${JSON.stringify(label)}`}`
  return `${what} belongs to owner ${JSON.stringify(owner)} (made ${made}), and ${asked}`
}

const maxRights = 5

function firstRights(rights: readonly Right[], nameOf: (right: Right) => string): string {
  const more = rights.length - maxRights
  return `${rights.slice(0, maxRights).map(nameOf).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Names of users are shown to actors who may view them. */
function gainsText({ users, total }: Gains, actor: Actor, gain: string): string {
  const what = `${total === 1 ? '1 user' : `${total} users`} whom the request does not name ${gain} rights`
  if (!allows(actor, 'view_user')) return what
  const each = users.map(({ username, rights }) => `${username} (${firstRights(rights, rightName)})`)
  const more = total - users.length
  return `${what}: ${each.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

export function gainsLine({ gains }: Given, actor: Actor, { mode, allow }: Conditions): string {
  if (mode !== 'plan') return gainsText(gains, actor, 'gained')
  const text = gainsText(gains, actor, 'would gain')
  return allow.grants ? text : `${text}. Apply it with Gatewright-Allow: grants, or with If-Match and this plan`
}

const announced = {
  superuser: ['becomes a superuser', 'become superusers'],
  secrets: ['gets the right to read secrets', 'get the right to read secrets'],
} as const

/** The lines of the log about users who become superusers, or may read secrets. */
export function announcementLines({ is, users, total }: AnnouncedGains, actor: Actor): string[] {
  const by = (group: string) => (allows(actor, 'view_group') ? ` (by group ${JSON.stringify(group)})` : '')
  const [one, many] = announced[is]
  const named = allows(actor, 'view_user') ? users : []
  const more = total - named.length
  return [
    ...named.map(({ username, group, rights = [] }) => {
      const which = group === undefined ? ` of ${firstRights(rights, rowsWithSecrets)}` : by(group)
      return `user ${JSON.stringify(username)} ${one}${which}`
    }),
    ...(more > 0 ? [`${more}${named.length > 0 ? ' more' : ''} ${more === 1 ? `user ${one}` : `users ${many}`}`] : []),
  ]
}

/** The rows whose secrets a right opens. */
function rowsWithSecrets(right: Right): string {
  const [, resource = ''] = /^read_(.*)_secrets$/.exec(permissionOf(right)) ?? []
  const rows = resource === 'certificatekeypair' ? 'certificate key pairs' : resource.replace(/provider$/, ' providers')
  const owner = ownerOf(right)
  return `${rows}${owner === null ? '' : ` of owner ${JSON.stringify(owner)}`}`
}

/** Names are shown to actors who may know the rows. */
function leftOver({ rows, acknowledged, actor }: Extract<Objection, { is: 'left' }>): string {
  const known = rows.filter(({ model, owner }) => mayKnow(actor, model, owner))
  const names = known.slice(0, maxListed).map(nameOf)
  const more = rows.length - names.length
  const listed = [...names, ...(more > 0 ? [`${more} more`] : [])].join(', ')
  if (rows.length > documentLimits.entries) return `${rows.length} left over: that is too much for one document`
  return `${rows.length} left over, and not ${acknowledged}: ${listed}. Gatewright-Allow: deletes=${rows.length} deletes them`
}

const broken = (effect: Effect, count: number): string =>
  count === 1 ? rowName(effect) : `one of ${count} ${effect.step.model.displayName}s`

const why = ({ effect, rule }: Extract<Objection, { is: 'broken' }>): string =>
  ({
    unique: 'a value that must be unique is taken',
    reference: effect.action === 'delete' ? 'something still refers to it' : 'a row that it refers to is gone',
    check: 'a rule of the database does not hold',
  })[rule]

/** The lines of the log about a finding: its change, and remarks. */
export function linesOf(finding: Finding | Skipped, mode: Mode): string[] {
  if (finding.cause === 'skipped') {
    const { entry = 0, model, identifiers } = finding.step
    return [skippedLine(entry, model.displayName, [...identifiers.values()], finding.step.isLeft)]
  }
  const done =
    finding.cause === 'taken'
      ? []
      : [whatWasDone(finding, mode), ...shortSecrets(finding), ...masksSent(finding), ...doubts(finding)]
  return [...done, ...ownerNote(finding)]
}

function whatWasDone(finding: Finding, mode: Mode): string {
  const { step, action } = finding
  const [[identifier = ''] = []] = step.identifiers
  const what =
    step.rename === 'old' ? `${step.model.displayName} ${JSON.stringify(step.attrs.get(identifier))}` : rowName(finding)
  const [done, withKey] = mode === 'plan' ? ['would be ', ''] : ['', ` (pk ${keyOf(finding)})`]
  switch (action) {
    case 'create':
      return `${what} ${done}created${withKey}`
    case 'update':
      return `${what} ${done}updated: ${fieldsAsText(finding, mode)}`
    case 'unchanged':
      return `${what} unchanged`
    case 'delete':
      return `${what} ${done}deleted${withKey}`
    case 'leave':
      if (step.state !== 'absent') return `${what} left as it is`
      return mode === 'plan' ? `${what} is not there` : `${what} was not there`
    default:
      return action satisfies never
  }
}

function ownerNote({ ownership, action, ...finding }: Finding): string[] {
  if (ownership === undefined) return []
  const { owner, made, is, becomes } = ownership
  const what = rowName(finding)
  const now = becomes === null ? 'it has no owner now' : `it belongs to owner ${JSON.stringify(becomes)} now`
  switch (is) {
    case 'ours':
      return becomes === undefined ? [] : [`${what} had no owner: ${now}`]
    case 'made by another':
      return finding.cause === 'taken' ? [] : [`${what} was made ${made}`]
    case 'taken over': {
      const had =
        owner === null
          ? `had no owner, and was made ${made}`
          : `belonged to owner ${JSON.stringify(owner)} (made ${made})`
      return [action === 'delete' ? `${what} ${had}` : `${what} ${had}: ${now}`]
    }
    case "another's":
      return []
    default:
      return is satisfies never
  }
}

/** Shorter secrets can be guessed. They are applied all the same: the system that they open may take no longer one. */
const minSecret = 20

/** A line for each secret that the document sets and that is short. An empty text is no secret. */
function shortSecrets(finding: Finding): string[] {
  const { step, action, sent, changed, values, generated } = finding
  if (action !== 'create' && action !== 'update') return []
  return [...step.model.fields.values()].flatMap(({ name, secret }) => {
    const value = values[name]
    const isSent = secret && sent.has(name) && changed.includes(name) && generated[name] === undefined
    if (!isSent || typeof value !== 'string' || value === '' || [...value].length >= minSecret) return []
    return [`warning: the sent ${name} of ${rowName(finding)} has fewer than ${minSecret} characters`]
  })
}

const doubts = (finding: Finding): string[] =>
  finding.action === 'create' || finding.action === 'update'
    ? (finding.step.model.doubts?.(finding.values) ?? []).map((each) => `warning: ${rowName(finding)}: ${each}`)
    : []

/** A line for each secret that stays because an older client sent its mask. */
const masksSent = (finding: Finding): string[] =>
  (finding.step.state === 'absent' ? [] : finding.masks).map(
    (name) =>
      `warning: the sent ${name} of ${rowName(finding)} is the mask of older versions, and the secret stays: send {"set": true}`,
  )

const maxShownFields = 20

/** The fields of a change: `name "a" -> "b", owners - "c" + "d", attributes.floor 1 -> 2, client_secret changed`. */
function fieldsAsText({ change: { fields }, step, action, sent, values }: Finding, mode: Mode): string {
  const ends = new Set(Object.keys(fields).map(expiresOf))
  const shown = Object.entries(fields).flatMap(([name, change]) => {
    // The new owner and the end of the earlier secret stand in lines of their own.
    if (change === 'unchanged' || name === 'owner' || ends.has(name)) return []
    if (change !== 'changed') return sidesAsText(name, change)
    const end = values[expiresOf(name)]
    if (action === 'update' && !sent.has(name)) return [`${name} changed (generated: it was lost)`]
    if (end === undefined) return [`${name} changed`]
    const until =
      mode === 'plan'
        ? `the one before would be valid for ${step.overlaps?.get(name)}`
        : `the one before is valid until ${end}`
    return [`${name} changed (${until})`]
  })
  const more = shown.length - maxShownFields
  return [...shown.slice(0, maxShownFields), ...(more > 0 ? [`${more} more`] : [])].join(', ')
}

/** One field: `name "a" -> "b"`; a list shows the items that differ: `owners - "a" + "b"`. */
function sidesAsText(name: string, sides: Sides): string[] {
  const { listed, more } = differences(name, sides)
  const texts = [...Map.groupBy(listed, ({ path }) => path)].map(([path, there]) =>
    [path, ...there.map(differenceAsText)].join(' '),
  )
  return [...texts, ...(more > 0 ? [`${more} more of ${name}`] : [])]
}

function differenceAsText({ from, to }: Difference): string {
  if (from === undefined) return `+ ${to}`
  return to === undefined ? `- ${from}` : `${from} -> ${to}`
}

/**
 * A line for each row that no row claims any more, with the remedy. Rows that the submitter may not know are left out
 * (docs/adr/0058-roles-are-bound-to-owners.md).
 */
export function orphanLines(orphans: readonly Orphan[], actor: Actor, { mode, replaceProvider }: Conditions): string[] {
  const has = mode === 'plan' ? 'would have' : 'has'
  const known = orphans.filter(({ row }) => mayKnow(actor, row.model, row.owner))
  const lines = known.map(({ row, claimant, isReplaced }) => {
    const remedy =
      isReplaced && !replaceProvider ? 'delete it, or send ?replace_provider=true next time' : 'delete it, or use it'
    return `${nameOf(row)} ${has} no ${claimant} now: ${remedy}`
  })
  return limited(lines)
}

/** The same, for each row that lost what it claimed. */
export function emptyLines(left: readonly LeftEmpty[], actor: Actor, mode: Mode): string[] {
  const [loses, has] = mode === 'plan' ? ['would lose', 'would have'] : ['lost', 'has']
  const known = left.filter(({ row }) => mayKnow(actor, row.model, row.owner))
  const lines = known.map(({ row, field, isLink, what }) =>
    isLink
      ? `${nameOf(row)} ${loses} ${what} from ${field}: send the field again with another, if it needs one`
      : `${nameOf(row)} ${has} no ${field} now, because ${what} is deleted: send it with another, or delete it`,
  )
  return limited(lines)
}

export function limited(lines: readonly string[]): string[] {
  const more = lines.length - maxListed
  return [...lines.slice(0, maxListed), ...(more > 0 ? [`${more} more are not listed`] : [])]
}
