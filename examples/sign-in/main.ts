/** `npm start`: the sign-in server and the small application, in one process. */
await import('./server.ts')
await import('./application.ts')
