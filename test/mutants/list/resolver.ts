import type { MutantsOf } from '../mutant.ts'

const again = 'test/plan/read-again.test.ts'
const names = 'test/plan/names.test.ts'
const references = 'test/plan/references.test.ts'
const tags = 'test/api/blueprint-tags.test.ts'

/** What a document looks up, and what is read again because an earlier entry wrote it. */
export default {
  'src/plan/places.ts': [
    {
      from: "    if (action === 'delete') this.#written.add(placeOf(model.table, 'gone', key))",
      to: '',
      why: 'a row that refers to one which is gone is not read again',
      tests: [again],
    },
    {
      from: 'for (const value of [...had, ...has]) this.#written',
      to: 'for (const value of has) this.#written',
      why: 'a name that an entry frees still counts as taken',
      tests: [again],
    },
    {
      from: 'for (const value of [...had, ...has]) this.#written',
      to: 'for (const value of had) this.#written',
      why: 'a name that an entry takes still counts as free',
      tests: [again],
    },
    {
      from: "this.#written.add(placeOf(model.table, 'pk', key))",
      to: '',
      why: 'a row that an entry wrote is not read again by its key',
      tests: [again],
    },
    {
      from: 'for (const other of had.concat(has)) this.#written',
      to: 'for (const other of []) this.#written',
      why: 'a row on the other side of a join table is not read again',
      tests: [again],
    },
    {
      from: 'comparedName(String(value))',
      to: 'String(value)',
      why: 'a name in another case counts as another name',
      tests: [again],
    },
  ],
  'src/plan/snapshot.ts': [
    {
      from: '[...by].some(([name, value]) => isWritten(name, value)) ||',
      to: 'false ||',
      why: 'a row that an earlier entry wrote under this name is not read again',
      tests: [again],
    },
    {
      from: '[...exclusive].some(([name, keys]) => keys.some((key) => isWritten(name, key))) ||',
      to: 'false ||',
      why: 'a value that an earlier entry took still counts as free',
      tests: [again],
    },
    {
      from: '(limit !== undefined && counted !== undefined && isWritten(limit.per, counted)) ||',
      to: 'false ||',
      why: 'a set may exceed the limit of rows',
      tests: [again],
    },
    {
      from: "written.has(written.tableOf({ reference }), 'pk', key)),",
      to: 'written === undefined && key === undefined),',
      why: 'a reference to a row that an earlier entry deletes is not an error',
      tests: [again],
    },
    {
      from: 'seen.rows.some((row) => written.refersToGone(model, row as Row))',
      to: 'false',
      why: 'a row keeps what it referred to when that is gone',
      tests: [again],
    },
    {
      from: 'return keys.every((key) => had.has(key) || created.has(key))',
      to: 'return had !== undefined || keys.length > 0',
      why: 'whether another row has a value behind a tag is not read',
      tests: [again],
    },
  ],
  'src/plan/known-rows.ts': [
    {
      from: 'if (!this.#rows.has(pk))',
      to: 'if (pk !== undefined)',
      why: 'the row of an earlier time hides what an entry did to it',
      tests: [names],
    },
    {
      from: "if (isForeign || action === 'leave' || action === 'unchanged') return",
      to: 'if (isForeign || action !== undefined) return',
      why: 'a name means what it meant before the document',
      tests: [names],
    },
    {
      from: 'if (another !== undefined) return { is:',
      to: 'if (another !== undefined && row === undefined) return { is:',
      why: 'of several rows with a name, one is taken',
      tests: [names],
    },
    {
      from: 'const fitting = rows.filter(({ values }) => fits(values, only))',
      to: 'const fitting = rows.filter(() => true)',
      why: 'a name finds a row that the field does not take',
      tests: [names],
    },
    {
      from: 'if (row === undefined) for (const same of this.#identified(model, values)) this.#remove(same)',
      to: '',
      why: 'a new row that two entries name counts as two rows',
      tests: [again],
    },
  ],
  'src/plan/namesakes.ts': [
    {
      from: 'if (isReported || isOwn(step, row, other) || !onlys.some(meets(other))) continue',
      to: 'if (isReported || isOwn(step, row, other) || onlys.length > 0) continue',
      why: 'who adds a property mapping makes the name of another one ambiguous',
      tests: [names],
    },
    {
      from: 'const isNew = row?.[columnOf(model, field)] !== name',
      to: 'const isNew = row?.[columnOf(model, field)] !== undefined',
      why: 'only the name of a row that is there may be refused',
      tests: [names],
    },
  ],
  'src/plan/resolve.ts': [
    {
      from: '(await this.views(model, row)) ? `',
      to: '(await this.views(model, row)) || true ? `',
      why: 'a refusal names rows that the caller may not view',
      tests: ['test/api/in-use.test.ts', names],
    },
    {
      from: 'if (id !== undefined) this.keys.set(id, entryKey)',
      to: 'if (id !== undefined) this.keys.set(`${id}.`, entryKey)',
      why: 'an entry cannot refer to an earlier one',
      tests: ['test/apply/states.test.ts'],
    },
    {
      from: '#evaluate(condition, true))) return null',
      to: '#evaluate(condition, true))) continue',
      why: 'an entry whose condition is false is applied',
      tests: [tags],
    },
    {
      from: 'if (error instanceof NotKnownYet) continue',
      to: 'if (error instanceof NotKnownYet) return null',
      why: 'a condition that is not known yet counts as false',
      tests: ['test/apply/check.test.ts'],
    },
    {
      from: '        if (!(error instanceof TagError)) throw error',
      to: '        if (error instanceof TagError) return null',
      why: 'a condition with an error counts as false',
      tests: ['test/apply/check.test.ts'],
    },
    {
      from: 'if (asks && found.code ===',
      to: 'if (found.code ===',
      why: 'what !Find does not find has no value, and no error',
      tests: [tags],
    },
    {
      from: 'if (value instanceof Key && value.key === undefined) throw new NotKnownYet()',
      to: '',
      why: 'a row is looked up by a key that is not known yet',
      tests: [tags],
    },
    {
      from: 'return another === undefined ? { row } : refuse(',
      to: 'return row !== undefined ? { row } : refuse(',
      why: '!Find takes one of several rows',
      tests: [references, tags, 'test/apply/check.test.ts'],
    },
    {
      from: 'item instanceof Named) && hasTwice(keys))',
      to: 'item instanceof Named) && hasTwice([]))',
      why: 'one row is named twice in a list',
      tests: [names, 'test/apply/many-errors.test.ts'],
    },
    {
      from: 'if (other !== table) rows.forgetRead()',
      to: 'if (other === undefined) rows.forgetRead()',
      why: 'a row is found by what it referred to before that was deleted',
      tests: [again],
    },
  ],
} satisfies MutantsOf
