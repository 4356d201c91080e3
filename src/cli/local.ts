/** Whether the service is on this machine: requests to it cross no network. */
export const isLocal = (url: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
