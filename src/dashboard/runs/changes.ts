import { isDeepStrictEqual } from 'node:util'
import type { Change } from '../../apply/changes.ts'
import { type Html, html } from '../../http/html.ts'
import { isObject } from '../../json-object.ts'
import { queryInteger } from '../../lists/filters.ts'
import type { Model } from '../../models/define.ts'
import type { Registry } from '../../models/registry.ts'
import { cutTo, type Difference, differences, markerText } from '../../sides.ts'
import { changeOrder, changeWords, countsOf, countsText } from '../../views/run-summary.ts'
import { runsPath, withQuery } from '../addresses.ts'
import { count, named, namesOf, nameText, number, whole } from '../words.ts'

/** The changes of a run, from -> to, an object in each line: effects first, unchanged objects last. */

/** The number of entries with each action: `2 deleted, 1 changed`. */
export const changeCounts = (changes: readonly Change[]): string => countsText(countsOf(changes), number)

export const areUnchanged = (changes: readonly Change[]): boolean =>
  changes.every(({ action }) => action === 'unchanged')

/** The most objects of a page, and those of them that are open. */
const objectsOfPage = 50
const openObjects = 3
/** The most lines of a run's log, and of an object. */
const mostLines = 40
const mostOfObject = 30

/** The member of an address: the index of the first change that is shown. */
export const startOfPart = queryInteger(0, 1_000_000).default(0)

type ChangesPart = { readonly start: number; readonly registry: Pick<Registry, 'byName'> }

/** A part of the changes of a page, with links to the others. @param address the address of the first part */
export function changesPart(changes: readonly Change[], address: string, { start, registry }: ChangesPart): Html {
  const order = ({ action }: Change) => changeOrder.indexOf(action)
  const shown = changes.toSorted((one, other) => order(one) - order(other)).slice(start, start + objectsOfPage)
  const objects = shown.map((change, index) => ({ change, id: start + index, isOpen: index < openObjects }))
  const left = changes.length - start - shown.length
  const nextAddress = `${address}${address.includes('?') ? '&' : '?'}start=${start + shown.length}`
  return html`${start > 0 && html`<p class="quiet">From ${number(start + 1)} on, of ${number(changes.length)}. <a href="${address}">From the first</a></p>`}
${[...Map.groupBy(objects, ({ change }) => change.action)].map(([action, all]) =>
  action === 'unchanged'
    ? html`<details id="unchanged"><summary>Unchanged: ${count(all.length, 'object')} of this page</summary><ul class="names">${all.map(({ change }) => html`<li>${named(objectName(change, registry))}</li>`)}</ul></details>`
    : html`<h3>${changeWords[action].replace(/^./, (first) => first.toUpperCase())}</h3>
${all.map((each) => objectOf(each, registry))}`,
)}
${left > 0 && shown.length > 0 && html`<p class="choice"><a class="button" href="${nextAddress}">The next ones</a> <span class="quiet">${number(left)} more of ${number(changes.length)}</span></p>`}`
}

type Shown = { readonly change: Change; readonly id: number; readonly isOpen: boolean }

/** An object in one line; the lines of its fields are below it. */
function objectOf({ change, id, isOpen }: Shown, registry: ChangesPart['registry']): Html {
  const { action, fields, model } = change
  const name = named(objectName(change, registry))
  const runs = runsOf(change, registry)
  if (Object.keys(fields).length === 0) return html`<p class="object">${name} ${runs}</p>`
  return html`<details class="object" id="object-${id}"${isOpen && html` open`}><summary>${name}</summary>${fieldList(fields, action === 'create', registry.byName(model))}${runs}</details>
`
}

/** A link to the runs that changed the object. */
function runsOf({ model, key }: Change, registry: ChangesPart['registry']): Html | false {
  const { resource } = registry.byName(model) ?? {}
  const query = { period: 'month', object: `${resource}:${Object.values(key)[0]}` }
  return resource !== undefined && html`<a href="${withQuery(runsPath, query)}">its runs</a>`
}

const objectName = ({ model, key }: Change, registry: ChangesPart['registry']): string =>
  nameText(`${namesOf(registry)(model)} ${Object.values(key).map(textOf).join(', ')}`)

/**
 * The fields of a change as lines: `name: from -> to`. Of lists and objects, a line for each item that was added or removed.
 *
 * @param isNew the fields of a created object have no value before, and those with their defaults are counted alone
 * @param model knows the defaults
 */
export function fieldList(fields: Change['fields'], isNew: boolean, model?: Model): Html {
  const { shown, defaults } = isNew ? partsOf(fields, model) : { shown: changedOf(fields), defaults: 0 }
  const lines = shown.flatMap(([name, field]) => linesOf(name, field, isNew))
  const left = lines.length - mostOfObject
  return html`<ul class="lines">${lines.slice(0, mostOfObject)}${
    left > 0 && html`<li class="quiet">and ${count(left, 'line')} more, in the API</li>`
  }${defaults > 0 && html`<li class="quiet">and ${count(defaults, 'default')}</li>`}</ul>`
}

type FieldChange = Change['fields'][string]

const changedOf = (fields: Change['fields']) => Object.entries(fields).filter(([, field]) => field !== 'unchanged')

/** The fields of a new object that are not defaults, and the number of those that are. */
export function partsOf(fields: Change['fields'], model?: Model) {
  const changed = changedOf(fields)
  const shown = changed.filter(([name, field]) => !isDefault(field, model?.fields.get(name)?.initial))
  return { shown, defaults: changed.length - shown.length }
}

const isDefault = (field: FieldChange, initial: unknown): boolean =>
  typeof field === 'object' && (isEmpty(field.to) || isDeepStrictEqual(field.to, initial))

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)

/** The lines of a field: one for each path in it. */
function linesOf(name: string, field: FieldChange, isNew: boolean): Html[] {
  if (typeof field === 'string') return [html`<li>${nameText(name)}: a secret${!isNew && html`: ${field}`}</li>`]
  const { from, to } = field
  const { listed, more } = differences(name, { from: besides(from, to), to: besides(to, from) }, { textOf })
  const lines = [...Map.groupBy(listed, ({ path }) => path)].map(([path, all]) => lineOf(path, all, isNew))
  return more > 0
    ? [...lines, html`<li class="quiet">and ${number(more)} more of ${nameText(name)}, in the API</li>`]
    : lines
}

/** Nothing, beside a list or an object, is an empty one: then its items are listed. */
const besides = (value: unknown, other: unknown): unknown =>
  value ?? (Array.isArray(other) ? [] : isObject(other) && markerText(other) === undefined ? {} : value)

function lineOf(path: string, all: readonly Difference[], isNew: boolean): Html {
  const [{ from, to } = {}] = all
  const name = nameText(path)
  if (from !== undefined && to !== undefined && !isNew)
    return html`<li>${name}: <span class="quiet">${whole(from)}</span> -> ${whole(to)}</li>`
  if (isNew && all.length === 1) return html`<li>${name}: ${whole(to ?? '')}</li>`
  const items = all.map(
    (each) => html`<li>${!isNew && (each.to === undefined ? '- ' : '+ ')}${whole(each.to ?? each.from ?? '')}</li>`,
  )
  return html`<li>${name}:<ul>${items}</ul></li>`
}

/** A value in words: no JSON. */
function textOf(value: unknown): string {
  if (isEmpty(value)) return 'nothing'
  if (!isObject(value) && !Array.isArray(value)) return String(value)
  const parts = Array.isArray(value)
    ? value.map(innerText)
    : Object.entries(value).map(([name, each]) => `${name}: ${innerText(each)}`)
  return markerText(value) ?? (parts.join(', ') || 'nothing')
}

const innerText = (value: unknown): string =>
  typeof value === 'object' && !isEmpty(value) ? `(${textOf(value)})` : textOf(value)

export function lineList(lines: readonly (string | Html)[]): Html {
  const shown = lines
    .slice(0, mostLines)
    .map((line) => html`<li>${typeof line === 'string' ? whole(cutTo(1_000, line)) : line}</li>`)
  return html`<ul>${shown}</ul>
${lines.length > shown.length && html`<p class="quiet">And ${count(lines.length - shown.length, 'line')} more, in the API.</p>`}`
}
