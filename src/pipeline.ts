import { z } from 'zod'
import { withExample } from './example.ts'

/** The form of the job of a CI system. Its claims are texts that a trusted issuer signed: they may be any texts. */

/** Characters of a claim. The exchange cuts longer ones. */
export const longestClaim = 300

const claim = (example: string, description: string) => withExample(z.string().nullable(), example, description)

export const pipelineForm = z
  .object({
    issuer: withExample(z.string(), 'github', 'The name of the trusted issuer.'),
    rule: withExample(z.string(), 'shop-main', 'The name of its rule.'),
    subject: withExample(z.string(), 'repo:acme/shop:ref:refs/heads/main', 'The `sub` of the identity token.'),
    repository: claim('acme/shop', 'The repository.'),
    ref: claim('refs/heads/main', 'The branch or tag.'),
    commit: claim('9f2c1e7ab04d5c6e8f1a2b3c4d5e6f7a8b9c0d1e', 'The commit.'),
    job: claim('11930541234', 'The id of the job, or of its run.'),
    job_url: claim('https://github.com/acme/shop/actions/runs/11930541234', 'Where the CI system shows the job.'),
    actor: claim('octocat', 'Who started the job: a name in the CI system, and no user of this service.'),
  })
  .meta({
    id: 'Pipeline',
    description: 'The job of a CI system, by the verified claims of its identity token.',
  })

export type Pipeline = Readonly<z.output<typeof pipelineForm>>

/** Null for what no job sent. A job is one also in a form that SQL or another version wrote. */
export const storedPipeline = pipelineForm.nullable().catch({
  ...{ issuer: 'not known', rule: 'not known', subject: 'not known', repository: null, ref: null },
  ...{ commit: null, job: null, job_url: null, actor: null },
})
