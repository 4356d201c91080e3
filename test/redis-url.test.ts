import { expect, test } from 'vitest'
import { RedisUrlError, readRedisUrl } from '../src/redis-url.ts'

test.each([
  ['redis://cache', { kind: 'single', url: 'redis://cache' }],
  ['rediss://u:p@cache:6380/1', { kind: 'single', url: 'rediss://u:p@cache:6380/1' }],
  [
    'redis+sentinel://one,two:26380,[::1]:7/main',
    {
      ...{ kind: 'sentinel', name: 'main', db: 0, tls: false, sentinels: {} },
      hosts: [
        { host: 'one', port: 26_379 },
        { host: 'two', port: 26_380 },
        { host: '::1', port: 7 },
      ],
    },
  ],
  [
    'rediss+sentinel://u:p%40%2C%25@one:1/main/3?sentinel_username=s&sentinel_password=%26p',
    {
      ...{ kind: 'sentinel', name: 'main', db: 3, tls: true, username: 'u', password: 'p@,%' },
      ...{ hosts: [{ host: 'one', port: 1 }], sentinels: { username: 's', password: '&p' } },
    },
  ],
  [
    'redis+cluster://:p@one,two:7000/',
    {
      ...{ kind: 'cluster', tls: false, password: 'p' },
      hosts: [
        { host: 'one', port: 6_379 },
        { host: 'two', port: 7_000 },
      ],
    },
  ],
])('%s', (url, place) => {
  expect(readRedisUrl(url)).toEqual(place)
})

test.each([
  ['localhost', /^is not a URL that starts with redis:\/\/, .* or rediss\+cluster:\/\/\.$/],
  ['http://:marker@cache', /^is not a URL/],
  ['redis://marker@one:1,two:2', /several take redis\+sentinel:\/\/ or redis\+cluster:\/\//],
  ['redis+sentinel://:marker@one', /lacks the name of the master/],
  ['redis+sentinel://one/main/db', /lacks the name of the master/],
  ['redis+sentinel://one/main?marker=1', /takes sentinel_username and sentinel_password/],
  ['redis+cluster://one/1', /has a path/],
  ['redis+cluster://one?db=1', /takes none/],
  ['redis+cluster://', /is not of the form redis\+cluster:\/\/host:port,host:port/],
  ['redis+cluster://one:marker', /host that is not host:port/],
  ['redis+cluster://:mar@ker@one', /is not of the form/],
  ['redis+cluster://one:70000', /host that is not host:port/],
  ['redis+cluster://:marker%@one', /percent-encoding/],
  [`redis+cluster://${Array.from({ length: 51 }, () => 'one').join(',')}`, /more than 50 hosts/],
])('%s is refused, and not repeated', (url, message) => {
  expect(() => readRedisUrl(url)).toThrow(message)
  expect(() => readRedisUrl(url)).toThrow(RedisUrlError)
  expect(() => readRedisUrl(url)).not.toThrow(/marker/)
})
