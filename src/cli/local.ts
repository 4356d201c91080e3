/** Whether the service is on this machine: what is sent to it crosses no network. */
export const isLocal = (url: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
