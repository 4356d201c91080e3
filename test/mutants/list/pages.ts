import type { MutantsOf } from '../mutant.ts'

const runs = 'test/dashboard/runs.test.ts'
const searches = 'test/dashboard/searches.test.ts'
const plots = 'test/dashboard/plots.test.ts'
const next = 'test/dashboard/next.test.ts'
const times = 'test/dashboard/times.test.ts'
const summary = 'test/dashboard/summary.test.ts'
const acts = 'test/api/dashboard-acts.test.ts'
const differences = 'test/dashboard/differences.test.ts'
const rollBack = 'test/dashboard/roll-back.test.ts'
const newest = 'test/dashboard/newest-run.test.ts'
const records = 'test/dashboard/records.test.ts'
const sizes = 'test/dashboard/sizes.test.ts'

/** What the pages of operators show, and to whom. */
export default {
  'src/views/expiries.ts': [
    {
      from: 'between({ gt: lately, lte: now }',
      to: 'between({ gt: now, lte: now }',
      why: 'an expired token is shown nowhere',
      tests: ['test/dashboard/expired.test.ts'],
    },
  ],
  'src/views/refusal.ts': [
    {
      from: 'return count < refusalsKept ? null : oldest.at',
      to: 'return count < 0 ? oldest.at : null',
      why: 'refusals are counted as if those that are no longer kept had not been',
      tests: [records],
    },
  ],
  'src/dashboard/table.ts': [
    {
      from: 'return index > 0 && left < 0',
      to: 'return false',
      why: 'a page of long texts is longer than 100 KB',
      tests: [sizes],
    },
  ],
  'src/dashboard/now/summary.ts': [
    {
      from: '...some(Object.values(now).filter((part) => part === null).length,',
      to: '...some(0 * Object.values(now).length,',
      why: 'the first page says that nothing is wrong when parts of it could not be read',
      tests: [summary],
    },
  ],
  'src/dashboard/now/parts.ts': [
    {
      from: 'const silent = servers.filter(isSilent)',
      to: 'const silent: typeof servers = []',
      why: 'a silent server of the API is shown as heard',
      tests: [summary],
    },
  ],
  'src/lists/run-groups.ts': [
    {
      from: '(maySeeCauses ? cause : null) ?? reason',
      to: 'cause ?? reason',
      why: 'the cause of a failure is shown to callers without view_run',
      tests: [runs],
    },
    {
      from: 'all.filter(({ id }) => !repaired.has(id)).length',
      to: 'all.length',
      why: 'a failure that a later run repaired is shown as failing',
      tests: [runs],
    },
  ],
  'src/lists/run-search.ts': [
    {
      from: 'seenRuns(spec, actor, values, { filters: quickFilters ?? [] })',
      to: 'seenRuns(spec, { ...actor, isSuperuser: true }, values, { filters: quickFilters ?? [] })',
      why: 'the list of runs counts and groups those of others for callers without view_run',
      tests: [runs],
    },
    {
      from: 'value: filter.seen?.(value, actor) ?? value }',
      to: 'value }',
      why: 'runs are found by objects that the caller may not view',
      tests: [runs],
    },
    {
      from: 'THEN ${lookedSql} END AS looked',
      to: 'THEN NULL::jsonb END AS looked',
      why: 'a search that looked through a part of the runs says that it found none',
      tests: [searches],
    },
  ],
  'src/runs/fold.ts': [
    {
      from: 'FROM run_folds WHERE until = $1::timestamptz FOR UPDATE SKIP LOCKED',
      to: 'FROM run_folds FOR UPDATE SKIP LOCKED',
      why: 'a run that two workers fold is counted twice',
      tests: [plots],
    },
    {
      from: "SELECT min(created_at) FROM runs WHERE state = 'queued'",
      to: 'SELECT NULL::timestamptz',
      why: 'a run that had not ended is in no plot of more than an hour',
      tests: [plots],
    },
    {
      from: '(CASE WHEN ${ms} < 1 THEN 0',
      to: '(CASE WHEN coalesce(${ms}, 0) < 1 THEN 0',
      why: 'a run that no worker began counts as one of a millisecond',
      tests: [plots],
    },
  ],
  'src/lists/run-rows.ts': [
    {
      from: 'AND ${seenRuns(spec, actor, values)}`',
      to: '`',
      why: 'the first page shows a run at work to callers who may not see it',
      tests: [runs],
    },
  ],
  'src/runs/at-work.ts': [
    {
      from: 'words.slice(0, values < 0 ? undefined : values)',
      to: 'words',
      why: 'the values of a statement that blocks a run are shown',
      tests: [runs],
    },
  ],
  'src/queue/pause.ts': [
    {
      from: 'by ${by.name} since',
      to: 'by an operator since',
      why: 'a pause is shown without the name of the operator',
      tests: [acts],
    },
  ],
  'src/dashboard/addresses.ts': [
    {
      from: "&& !pathname.includes('//')",
      to: '',
      why: 'a login leads to an address with two slashes',
      tests: [next],
    },
    {
      from: '&& !isOfSession(pathname)',
      to: '',
      why: 'a login leads to the logout',
      tests: [next],
    },
  ],
  'src/dashboard/times.ts': [
    {
      from: 'title === undefined ? time(new Date(iso), zone)',
      to: 'title === undefined ? time(new Date(iso))',
      why: 'a page says that its times are in another zone, and they are in UTC',
      tests: [times],
    },
  ],
  'src/dashboard/zone.ts': [
    {
      from: "hourCycle: 'h23'",
      to: "hourCycle: 'h12'",
      why: 'times of the afternoon are shown as those of the morning',
      tests: [times],
    },
  ],
  'src/dashboard/acts.ts': [
    {
      from: 'pausedBy: actor.username, reason }',
      to: 'pausedBy: actor.username }',
      why: 'the reason of a pause is forgotten',
      tests: [acts],
    },
  ],
  'src/http/access-log.ts': [
    {
      from: 'routeOptions.url?.startsWith(dashboardPath) === true &&',
      to: '',
      why: 'a caller of the API keeps its requests out of the log by a header',
      tests: ['test/api/logs.test.ts'],
    },
    {
      from: 'status === 200 && isRefresh(request)',
      to: 'isRefresh(request)',
      why: 'the log has no line of a page that could not be shown again',
      tests: ['test/api/logs.test.ts'],
    },
  ],
  'src/http/html.ts': [
    {
      from: '/[&<>"\']/g',
      to: '/[&<>]/g',
      why: 'a value ends the attribute that it stands in',
      tests: ['test/http/html.test.ts'],
    },
  ],
  'src/dashboard/runs/later.ts': [
    {
      from: ' || changes.length > mostObjects',
      to: '',
      why: 'a page says that no later run changed its objects, and asked for the first ones only',
      tests: [newest],
    },
    {
      from: "!allows(actor, 'view_run')",
      to: 'false',
      why: 'a page says that no later run changed its objects to a caller who sees few runs',
      tests: [newest],
    },
  ],
  'src/dashboard/runs/roll-back.ts': [
    {
      from: '\'if-match\': `"${tag}"`,',
      to: '',
      why: 'a roll back applies another plan than the one that was shown',
      tests: [rollBack],
    },
    {
      from: 'run.submitter !== actor.pk',
      to: 'run.submitter === undefined',
      why: 'the plan of another user is shown and applied',
      tests: [rollBack],
    },
    {
      from: 'formerOfRun(row) === id',
      to: 'formerOfRun(row) !== null',
      why: 'the plan of another run is shown as that of this one',
      tests: [rollBack],
    },
    {
      from: "return ['same-origin', 'none'].includes(String(headers['sec-fetch-site']))",
      to: "return !['cross-site', 'same-site'].includes(String(headers['sec-fetch-site']))",
      why: 'a client that does not say where it comes from makes a plan',
      tests: [rollBack],
    },
  ],
  'src/views/history-difference.ts': [
    {
      from: '{ from: last.from, to: next.to }',
      to: 'next',
      why: 'of two states, only the last change between them is shown',
      tests: [differences],
    },
    {
      from: '!isSame(field, each.from, each.to)',
      to: 'true',
      why: 'what was changed and put back is shown as a difference',
      tests: [differences],
    },
  ],
  'src/views/run-differences.ts': [
    {
      from: "isSecret(from, name) || isSecret(to, name) ? 'changed'",
      to: "isSecret(from, name) && isSecret(to, 'none') ? 'changed'",
      why: 'a secret of a document is compared as if it were none',
      tests: [differences],
    },
  ],
  'src/lists/earlier-run.ts': [
    {
      from: 'AND ${seenRuns(spec, actor, values)}',
      to: '',
      why: 'the document of a run is compared with one that the caller may not see',
      tests: [differences],
    },
  ],
  'src/dashboard/session-hook.ts': [
    {
      from: "request.routeOptions.config.takes !== 'run'",
      to: 'true',
      why: 'a roll back takes manage_queue',
      tests: [rollBack],
    },
  ],
} satisfies MutantsOf
