import { describe, expect, test } from 'vitest'
import { maxChecked } from '../../src/submissions/check.ts'
import { runSummary } from '../../src/views/run.ts'
import {
  type Answer,
  type Asker,
  adminToken,
  answered,
  applied,
  dashboardOf,
  githubClaims,
  installation,
  named,
  rows,
  sql,
  startIssuer,
  textOf,
  until,
} from '../support/kit.ts'
import { exchangeStand } from './exchange-stand.ts'
import { fresh, group } from './stack-cases.ts'

/** A run keeps the job of a CI system that submitted it, by the verified claims of its identity token. */

const issuer = await startIssuer()
const on = await installation({ privateIssuers: [issuer.url] })
const deployer = await on.make.user({
  permissions: [
    ...['application', 'radiusprovider', 'group'].flatMap((each) => [`add_${each}`, `change_${each}`, `view_${each}`]),
    ...['impersonate', 'view_run', 'roll_back_run'],
  ],
})
const { trust, job: jobOf } = exchangeStand(on, issuer)
await trust([{ name: 'acme', claims: { sub: 'repo:acme/*' }, user: deployer.username }], { name: 'github' })

const sha = String(githubClaims().sha)
const commitOf = (letter: string) => letter.repeat(40)
const claimed = {
  ...{ issuer: 'github', rule: 'acme', subject: 'repo:acme/shop:ref:refs/heads/main' },
  ...{ repository: 'acme/shop', ref: 'refs/heads/main', commit: sha, actor: 'ann' },
  ...{ job: '1234567890', job_url: `${issuer.url}/acme/shop/actions/runs/1234567890` },
}
const jobIn = async (answer: Answer) => (await on.admin.runOf(answer)).pipeline
const listed = async (query: Record<string, string>, who: Asker = on.admin) => {
  const { json } = await answered(200, who.get(`/api/v3/blueprints/runs/?${new URLSearchParams(query)}`))
  const { results } = json as { results: unknown[] }
  return results.map((result) => runSummary.strict().parse(result))
}

describe('the job is kept with each run that it submits:', () => {
  test('a submission, a document, a set and their plans; not with those of others', async () => {
    const job = await jobOf()
    const submission = await named('radius', fresh('app'))
    for (const answer of [
      await job.submit('radius', fresh('app')),
      await job.submit('radius', fresh('app'), { query: 'dry_run=true' }),
      await job.apply([group(fresh('group'))]),
      await job.plan([group(fresh('group'))]),
      await job.put('/api/v3/blueprints/', [submission]),
    ]) {
      await answered(200, answer)
      expect(await jobIn(answer)).toEqual(claimed)
      expect(await listed({ id: answer.runId })).toMatchObject([{ pipeline: claimed }])
    }
    const other = await applied(deployer.apply([group(fresh('group'))]))
    expect(await jobIn(other)).toBe(null)
    expect(await listed({ id: other.runId })).toMatchObject([{ pipeline: null }])
  })

  test('a former document has the job that submits it again, and none of a user', async () => {
    const name = fresh('group')
    const first = await applied((await jobOf()).apply([group(name)]))
    const again = (who: Asker) => answered(200, who.post(`${first.run}apply/?dry_run=true`))
    expect(await jobIn(await again(await jobOf({ sha: commitOf('b') })))).toEqual({ ...claimed, commit: commitOf('b') })
    expect(await jobIn(await again(deployer))).toBe(null)
  })

  test('a job that impersonates', async () => {
    const user = await on.make.user({ permissions: ['add_group', 'change_group'] })
    const headers = { 'impersonate-user': user.username }
    expect(await jobIn(await applied((await jobOf()).apply([group(fresh('group'))], { headers })))).toEqual(claimed)
  })

  test('a claim that is not there is null', async () => {
    const claims = { repository: null, ref: null, sha: null, actor: null, run_id: null, jti: 'j' }
    const answer = await applied((await jobOf(claims)).apply([group(fresh('group'))]))
    expect(await jobIn(answer)).toEqual({
      ...claimed,
      ...{ repository: null, ref: null, commit: null, actor: null, job: 'j', job_url: null },
    })
  })
})

test('a worker knows that a job submitted a document that is too large to be checked before', async () => {
  const token = {
    model: 'service_core.token',
    identifiers: { identifier: fresh('token') },
    attrs: { user: deployer.pk, intent: 'api' },
  }
  const entries = [token, ...Array.from({ length: maxChecked }, () => group(fresh('group')))]
  const runOf = async (who: Asker) => {
    const { run } = await answered(202, who.apply(entries))
    const ended = async () => {
      const { json } = await who.get(run)
      return (json as { finished_at: string | null }).finished_at === null ? undefined : json
    }
    return until('the end of the run', ended)
  }
  expect(await runOf(await jobOf())).toMatchObject({
    ...{ applied: false, reason: 'permission_denied' },
    logs: [expect.stringContaining('the access token of a job is for no token of its own user')],
  })
  expect(await runOf(deployer)).toMatchObject({ applied: true })
})

test('the lines of the API and of the worker name the repository and the commit', async () => {
  const request = fresh('request')
  await applied((await jobOf()).apply([group(fresh('group'))], { headers: { 'x-request-id': request } }))
  const lines = () => on.log.map((line) => JSON.parse(line)).filter((line) => line.request === request)
  const ends = () => lines().filter(({ msg }) => ['answered', 'run ended'].includes(msg))
  await until('both lines', () => ends().length === 2)
  expect(ends()).toMatchObject(Array(2).fill({ repository: 'acme/shop', commit: sha }))
})

describe('runs are found', () => {
  const longest = { repository: `acme/${'r'.repeat(295)}`, sha: `100%_${'c'.repeat(295)}` }

  test('by the beginning of the commit, and by the repository', async () => {
    const commit = `abc1234${commitOf('d').slice(7)}`
    const [one, two] = [
      await applied((await jobOf({ sha: commit })).apply([group(fresh('group'))])),
      await applied((await jobOf({ sha: commit, repository: 'acme/web' })).apply([group(fresh('group'))])),
    ]
    const found = async (query: Record<string, string>) => (await listed(query)).map(({ id }) => id)
    for (const start of [commit, commit.slice(0, 7)])
      expect(await found({ commit: start })).toEqual([two.runId, one.runId])
    expect(await found({ commit: 'bc12345' })).toEqual([])
    expect(await found({ commit, repository: 'acme/web' })).toEqual([two.runId])
    expect(await found({ repository: 'acme/we' })).toEqual([])
  })

  test('by claims of the greatest length, of which each character counts', async () => {
    const { runId } = await applied((await jobOf(longest)).apply([group(fresh('group'))]))
    for (const query of [{ commit: longest.sha }, { commit: '100%_' }, { repository: longest.repository }])
      expect(await listed(query)).toMatchObject([{ id: runId }])
    for (const commit of ['1%', '100%_x', '100_']) expect(await listed({ commit })).toEqual([])
    await answered(400, on.admin.get(`/api/v3/blueprints/runs/?commit=${'c'.repeat(301)}`))
  })
})

describe('the job is shown', () => {
  test('in histories and with stacks, as far as the caller may see the run', async () => {
    const [slug, stack] = [fresh('app'), fresh()]
    const permissions = ['view_application', 'view_radiusprovider']
    const [blind, seeing] = [
      await on.make.user({ permissions }),
      await on.make.user({ permissions: [...permissions, 'view_run'] }),
    ]
    const { runId } = await applied((await jobOf()).submit('radius', slug, { stack }))
    await applied(on.admin.submit('radius', slug, { app: { group: 'other' } }))
    const history = async (who: Asker) => {
      const { json } = await answered(200, who.get(`/api/v3/core/applications/${slug}/history/`))
      return (json as { results: { run: string | null; pipeline: object | null }[] }).results
        .filter(({ run }) => run === runId || run === null)
        .map(({ pipeline }) => pipeline)
    }
    const stackOf = async (who: Asker) => (await answered(200, who.get(`/api/v3/blueprints/stacks/${stack}/`))).json
    for (const who of [on.admin, seeing]) {
      expect(await history(who)).toEqual([claimed, claimed])
      expect(await stackOf(who)).toMatchObject({ run: runId, pipeline: claimed })
    }
    expect(await history(blind)).toEqual([null, null, null])
    expect(await stackOf(blind)).toMatchObject({ run: runId, pipeline: null })
    await on.db.run.delete({ where: { id: runId } })
    expect(await stackOf(on.admin)).toMatchObject({ pipeline: null })
  })

  test('to no caller who may not read the run', async () => {
    const { run, runId } = await applied((await jobOf()).apply([group(fresh('group'))]))
    const stranger = await on.make.user()
    await answered(404, stranger.get(run))
    expect(await listed({ id: runId }, stranger)).toEqual([])
    expect(await listed({ commit: sha, repository: 'acme/shop' }, stranger)).toEqual([])
  })

  test('as one of which nothing is known where the database holds it in another form', async () => {
    const answer = await applied((await jobOf()).apply([group(fresh('group'))]))
    await rows(
      on.db,
      sql`UPDATE runs SET options = jsonb_set(options, '{pipeline}', '{"commit": 7}') WHERE id = ${answer.runId}::uuid`,
    )
    const pipeline = { issuer: 'not known', subject: 'not known', repository: null, commit: null }
    expect(await jobIn(answer)).toMatchObject(pipeline)
    expect(await listed({ id: answer.runId })).toMatchObject([{ pipeline }])
  })
})

describe('on the pages of operators', () => {
  const dashboard = dashboardOf(on)
  const linksOf = (body: string) =>
    [...body.matchAll(/href="([^"]+)"/g)].map(([, to = '']) => to.replaceAll('&amp;', '&'))
  const page = async (url: string) => {
    const { statusCode, body } = await dashboard.get({ token: adminToken }, url)
    expect(statusCode, url).toBe(200)
    return { body, text: textOf(body), links: linksOf(body) }
  }
  const isOfRun = (id: string) => expect.stringContaining(`id="run-${id}"`)

  test('a run has its claims, which lead to the runs of the same repository and commit', async () => {
    const { runId } = await applied((await jobOf({ sha: commitOf('e') })).apply([group(fresh('group'))]))
    const { text, links } = await page(`/admin/runs/${runId}/`)
    expect(text).toMatch(
      /CI issuer github CI rule acme CI subject repo:acme\/shop\S+ CI repository acme\/shop CI ref refs\/heads\/main CI commit e{40} CI job 1234567890 CI job url http\S+ CI actor ann/,
    )
    const lists = links.filter((to) => /[?&](repository|commit)=/.test(to))
    expect(lists).toHaveLength(2)
    for (const list of lists) {
      const { body } = await page(list)
      expect(body).toEqual(isOfRun(runId))
      expect(body).toContain('title="eeeeeeee">eeeeeeee</td>')
    }
  })

  test('a list has the commits where a run has one, and no column for none', async () => {
    const name = fresh('group')
    const { runId } = await applied(on.admin.apply([group(name)]))
    const { body } = await page(`/admin/runs/?object=group:${name}`)
    expect(body).toEqual(isOfRun(runId))
    expect(body).not.toContain('Commit</th>')
  })

  test('an application has the job of each change', async () => {
    const slug = fresh('app')
    await applied((await jobOf({ sha: commitOf('f') })).submit('radius', slug))
    const { text } = await page(`/admin/applications/${slug}/`)
    expect(text).toMatch(/acme\/shop ffffffff CI issuer github .* CI commit f{40} .* CI job url \S+ CI actor ann/)
  })

  const unescaped = (text: string) => text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>')
  const hostile = (length: number) => '"<i>'.repeat(length).slice(0, length)
  test.each([
    ['https://github.com/acme/shop/actions/runs/1?a=1&b="<i>', true],
    [`https://github.com/${'x'.repeat(1_980)}`, true],
    ['http://github.com/acme/shop', false],
    ['javascript:alert(1)//https://github.com', false],
    [' javascript:alert(1)', false],
    ['//github.com/acme', false],
    ['https://', false],
    [hostile(2_000), false],
  ])('the address of a job is a link when it is one of HTTPS, case %#', async (url, isLink) => {
    const slug = fresh('app')
    const { runId } = await applied((await jobOf()).submit('radius', slug))
    const names = ['issuer', 'rule', 'subject', 'repository', 'ref', 'commit', 'job', 'actor']
    const pipeline = { ...Object.fromEntries(names.map((name) => [name, hostile(300)])), job_url: url }
    const options = JSON.stringify({ pipeline })
    await rows(on.db, sql`UPDATE runs SET options = options || ${options}::jsonb WHERE id = ${runId}::uuid`)
    for (const at of [`/admin/runs/${runId}/`, `/admin/applications/${slug}/`]) {
      const { body, links } = await page(at)
      const others = links.filter((to) => !/^[/#]/.test(to)).map(unescaped)
      expect([...new Set(others)]).toEqual(isLink ? [url] : [])
      expect(body).not.toContain('<i>')
      for (const list of links.filter((to) => /[?&](repository|commit)=/.test(to)))
        expect((await page(list)).body).toEqual(isOfRun(runId))
    }
  })
})
