import { readFileSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

/**
 * `node generate.ts DOCUMENT TARGET`: writes the types of an OpenAPI document. The generator prints them by TypeScript's
 * programmatic API, which the compiler of this project no longer has: it gets the last one that did.
 */

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === 'typescript' ? '@ts-morph/common/dist/typescript.js' : specifier, context),
})

const [document = '', target = ''] = process.argv.slice(2)
const { default: generate, astToString } = await import('openapi-typescript')
// A request need not contain a field with a default.
const types = await generate(readFileSync(document, 'utf8'), { defaultNonNullable: false })
writeFileSync(target, astToString(types))
