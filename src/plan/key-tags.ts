import { Find, KeyOf } from '../document/document.ts'
import { Deferred } from './deferred.ts'
import { itemsOf } from './list-edit.ts'
import { Named } from './named.ts'

/** Values in place of keys in the fields of an entry. */

export const isTag = (value: unknown): value is KeyOf | Find | Named =>
  value instanceof KeyOf || value instanceof Find || value instanceof Named

/** The sent value in place of a key, in messages. */
export const sentAs = (tag: unknown, key: unknown): string =>
  tag instanceof KeyOf ? `!KeyOf ${tag.id}` : tag instanceof Named ? JSON.stringify(tag.name) : String(key)

/** Whether a value is, or holds, a value in place of a key. */
export const hasTag = (value: unknown): boolean =>
  itemsOf(value).some((item) => isTag(item) || item instanceof Deferred)
