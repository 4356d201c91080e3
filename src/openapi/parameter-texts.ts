/** What parameters mean that say nothing themselves. A list has most of them from its declaration. */

const repeated = 'May be repeated: one of the values must match.'

const ofQuery: Readonly<Record<string, string>> = {
  application: 'Of the application with this UUID.',
  created_after: 'Made at this time or later.',
  created_before: 'Made before this time.',
  created_by: 'Made by the user with this key.',
  designation: `What the flow is for. ${repeated}`,
  email: 'With this e-mail address exactly.',
  expires_after: 'Expires at this time or later.',
  expires_before: 'Expires before this time.',
  expiring: 'Whether it expires at all.',
  group: 'In this group of applications exactly.',
  groups_by_name: `A direct member of a group with this name. ${repeated}`,
  groups_by_pk: `A direct member of the group with this UUID. ${repeated}`,
  identifier: 'With this identifier exactly.',
  include_groups: 'False: `groups_obj` is null, and the answer is faster.',
  include_users: 'False: `users_obj` is null, and the answer is faster.',
  intent: `What the token is for. ${repeated}`,
  is_active: 'Whether the user may log in.',
  is_superuser: 'Whether it gives or has all rights.',
  kind: 'Of this kind.',
  managed: 'Under this mark of what manages it.',
  members_by_pk: `Has the user with this key as a direct member. ${repeated}`,
  members_by_username: `Has the user with this name as a direct member. ${repeated}`,
  mode: `Applied, or only planned. ${repeated}`,
  name: 'With this name exactly.',
  owner: 'Managed under this label.',
  page: 'The number of the page, from 1.',
  page_size: 'How many results a page has.',
  path: 'At this path exactly.',
  path_startswith: 'At a path that starts with this text.',
  provider: 'With the provider that has this key.',
  reason: 'Ended for this reason.',
  request_id: 'Submitted by the request with this `X-Request-Id`.',
  slug: 'With this slug exactly.',
  state: `In this state. ${repeated}`,
  submitter: 'Submitted by the user with this key.',
  type: `Of this type. ${repeated}`,
  user: 'Of the user with this key.',
  username: 'With this user name exactly.',
  uuid: 'With this UUID.',
}

const ofPath: Readonly<Record<string, string>> = {
  group_uuid: 'The `pk` of the group.',
  id: 'The id of the run.',
  identifier: 'The identifier of the token.',
  name: 'The name of the object.',
  slug: 'The slug of the object.',
}

export const parameterText = (location: string, name: string): string | undefined =>
  (location === 'path' ? ofPath : location === 'query' ? ofQuery : {})[name]
