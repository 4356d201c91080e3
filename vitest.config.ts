import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    environment: 'node',
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/servers.ts'],
    setupFiles: ['test/support/setup.ts'],
    // Real processes, sockets and signals: a file gets a process of its own.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 15_000,
    hookTimeout: 30_000,
    restoreMocks: true,
    expect: { requireAssertions: true },
  },
})
