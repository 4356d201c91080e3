import { z } from 'zod'
import { groupView } from '../views/group.ts'
import { groupSummary } from '../views/group-summary.ts'
import { me } from '../views/me.ts'
import { providerSummary } from '../views/provider.ts'
import { run, runSummary } from '../views/run.ts'
import { token } from '../views/token.ts'
import { totpDeviceView } from '../views/totp-device.ts'
import { userView } from '../views/user.ts'
import { userConsent } from '../views/user-consent.ts'

/** Names and examples for the parts of answers. All examples are of one organisation, so that they fit together. */

const keys = {
  platform: '01a1fd66-1f20-7c11-8a30-5b6f3f2d9a01',
  engineering: '01a1fd66-1f20-7c11-8a30-5b6f3f2d9a00',
  operator: '01a1fd66-1f20-7c11-8a30-5b6f3f2d9b01',
  ada: '7d0f4b1e-5c62-4f0e-9c53-0e2f7a1b9c44',
  application: '01a1fd66-cb34-7782-913d-bbffaaf714c9',
  token: '01a1fd66-1f20-7c11-8a30-5b6f3f2d9c01',
}

const uid = '3c9d5d0b3f8f4f6d1a55c2b4e0a7f1c2d8e9b6a4f3c2d1e0b9a8f7e6d5c4b3a2'
const avatar = 'https://avatars.example.com/ada.png'

const brief = {
  pk: 17,
  username: 'ada',
  name: 'Ada Lovelace',
  is_active: true,
  last_login: '2026-11-20T08:15:00.000Z',
  email: 'ada@example.com',
  attributes: { department: 'platform', avatar },
  uid,
}

const summary = {
  pk: keys.platform,
  num_pk: 12,
  name: 'platform',
  is_superuser: false,
  parent: keys.engineering,
  parent_name: 'engineering',
  attributes: { cost_center: 4711 },
}

const user = {
  ...brief,
  is_superuser: false,
  groups: [keys.platform],
  groups_obj: [summary],
  avatar,
  path: 'users/staff',
  type: 'internal' as const,
  uuid: keys.ada,
}

const role = { pk: keys.operator, name: 'operators' }

const provider = {
  pk: 12,
  name: 'grafana',
  authentication_flow: null,
  authorization_flow: '6f7e0000-0000-4000-8000-000000000102',
  property_mappings: ['6f7e0000-0000-4000-8000-000000000201'],
  component: 'service-provider-oauth2-form',
  assigned_application_slug: 'grafana',
  assigned_application_name: 'Grafana',
  assigned_backchannel_application_slug: '',
  assigned_backchannel_application_name: '',
  verbose_name: 'OAuth2/OpenID Provider',
  verbose_name_plural: 'OAuth2/OpenID Providers',
  meta_model_name: 'service_providers_oauth2.oauth2provider',
}

const grafana = {
  pk: keys.application,
  name: 'Grafana',
  slug: 'grafana',
  provider: provider.pk,
  provider_obj: provider,
  backchannel_providers: [],
  backchannel_providers_obj: [],
  launch_url: 'https://grafana.example.com/login/generic_oauth',
  open_in_new_tab: true,
  meta_launch_url: 'https://grafana.example.com/login/generic_oauth',
  meta_icon: null,
  meta_description: 'Dashboards of the platform team',
  meta_publisher: 'Grafana Labs',
  policy_engine_mode: 'any' as const,
  group: 'Monitoring',
}

const runOfBlueprint = {
  id: '01a1fd66-cb30-7a41-8c55-2f1b7a9d0e63',
  state: 'done' as const,
  mode: 'apply' as const,
  title: 'apply blueprint organisation',
  kind: 'blueprint',
  slug: null,
  applied: true,
  reason: null,
  logs: ['group "platform" created'],
  submitter: brief.pk,
  submitter_name: brief.username,
  request_id: '6a1c5f2e-3b0d-4f4e-9a51-0d8f6c1b7e21',
  attempts: 1,
  created_at: '2026-11-20T08:15:00.120Z',
  started_at: '2026-11-20T08:15:00.123Z',
  finished_at: '2026-11-20T08:15:00.131Z',
  queue_ms: 3,
  work_ms: 8,
}

/** Examples of request bodies, by the name of their schema. */
export const bodyExamples: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  CreateGroup: {
    name: 'platform',
    parent: keys.engineering,
    users: [brief.pk],
    roles: [role.pk],
    attributes: { cost_center: 4711 },
  },
  ChangeGroup: { users: [brief.pk, 23] },
  CreateToken: {
    identifier: 'ada-pipeline',
    description: 'Deploys from the pipeline',
    expires: '2026-12-21T09:30:00Z',
  },
  ChangeToken: { description: 'Deploys from the new pipeline' },
}

export function nameSchemas(): void {
  name('User', userView.schema, user)
  name('GroupSummary', groupSummary, summary)
  const { users_obj, roles_obj } = groupView.schema.shape
  name('UserBrief', users_obj.unwrap().element, brief)
  name('Role', roles_obj.element, role)
  name('Group', groupView.schema, {
    ...summary,
    users: [brief.pk],
    users_obj: [brief],
    roles: [role.pk],
    roles_obj: [role],
  })
  name('TotpDevice', totpDeviceView.schema, { pk: 3, name: 'Phone' })
  name('Token', token, {
    pk: keys.token,
    managed: null,
    identifier: 'ada-pipeline',
    intent: 'api',
    user: user.pk,
    user_obj: user,
    description: 'Deploys from the pipeline',
    expires: '2026-12-21T09:30:00.000Z',
    expiring: true,
  })
  name('ProviderSummary', providerSummary, provider)
  name('Application', userConsent.shape.application, grafana)
  name('UserConsent', userConsent, {
    pk: 5,
    expires: '2027-01-01T00:00:00.000Z',
    expiring: true,
    user,
    application: grafana,
    permissions: 'openid profile email',
  })
  name('RunSummary', runSummary, runOfBlueprint)
  name('Run', run, {
    ...runOfBlueprint,
    progress: null,
    owner: 'team-a',
    allowed: [],
    changes: [
      {
        model: 'service_core.group',
        key: { name: 'engineering' },
        action: 'update',
        fields: { is_superuser: { from: true, to: false } },
      },
    ],
    etag: null,
    blueprint: 'version: 1\nmetadata:\n  name: organisation\nentries: []\n',
    generated: {},
  })
  name('CurrentUser', me.shape.user, {
    pk: user.pk,
    username: user.username,
    name: user.name,
    is_active: true,
    is_superuser: false,
    groups: [
      { name: 'engineering', pk: keys.engineering },
      { name: 'platform', pk: keys.platform },
    ],
    email: user.email,
    avatar,
    uid,
    settings: { theme: 'dark' },
    type: user.type,
    system_permissions: ['add_application', 'change_application', 'view_group', 'view_user'],
  })
}

function name<Schema extends z.ZodType>(id: string, schema: Schema, example: z.input<Schema>): void {
  z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), id, examples: [example] })
}
