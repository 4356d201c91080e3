import type { Registry } from '../models/registry.ts'
import { seesAllRuns } from '../permissions.ts'
import { membersSeen, stackView } from '../views/stack.ts'
import * as filter from './filters.ts'
import type { ListSpec } from './listed.ts'
import { stackName } from './tables.ts'

/** The stacks of which the caller may know an object. Those without one are for callers who see all runs. */
export const stackList = (registry: Registry): ListSpec<'Stack'> => ({
  path: '/blueprints/stacks/',
  summary: 'List stacks',
  description:
    'What one repository manages, by the name that its documents send as `Gatewright-Stack`. Counts and objects are those that the caller may know.',
  permission: 'authenticated',
  view: stackView(registry),
  seen: (actor, bind) =>
    seesAllRuns(actor) ? null : `EXISTS (${membersSeen(registry, actor, 'm.stack = stacks.name', bind)})`,
  count: 'rows',
  search: stackName,
  order: { name: 'name', created_at: 'createdAt' },
  defaultOrder: 'name',
  filters: { name: filter.isOneOfKeys('name', 'text') },
})
