/** `npm run bench -- <name> [options]`: one file for each benchmark. */

type Bench = { readonly usage: string; bench(args: string[]): Promise<void> }

const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  apply: () => import('./apply.ts'),
  lists: () => import('./lists.ts'),
  large: () => import('./large.ts'),
  idle: () => import('./idle.ts'),
  plan: () => import('./plan.ts'),
  sets: () => import('./sets.ts'),
  caller: () => import('./caller.ts'),
  cli: () => import('./cli.ts'),
  repository: () => import('./repository.ts'),
  tabs: () => import('./tabs.ts'),
  pages: () => import('./pages.ts'),
  scale: () => import('./scale.ts'),
  ledger: () => import('./ledger.ts'),
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
