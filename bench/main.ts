/** `npm run bench -- <name> [options]`: measured claims. Each stands in a file of its own and says what it measures. */

type Bench = { readonly usage: string; bench(args: string[]): Promise<void> }

const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  apply: () => import('./apply.ts'),
  lists: () => import('./lists.ts'),
}

const [name = '', ...args] = process.argv.slice(2)
const load = Object.hasOwn(benches, name) ? benches[name] : undefined
if (load === undefined) {
  console.error(`usage: npm run bench -- <${Object.keys(benches).join(' | ')}> [options]`)
  process.exit(1)
}
const { bench, usage } = await load()
if (args.includes('--help')) console.log(usage)
else await bench(args)
process.exit(0)
