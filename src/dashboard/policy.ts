import { policy, self } from '../http/headers.ts'

export type PagePolicy = ReturnType<typeof policy>

/**
 * What a page of the dashboard may load: files of this host, no inline scripts.
 *
 * @param styles sources of styles: `'self'`, or the hash of an inline style
 */
export const pagePolicy = (...styles: string[]): PagePolicy =>
  policy({
    'script-src': self,
    'style-src': styles,
    'img-src': self,
    'font-src': self,
    'connect-src': self,
    'worker-src': self,
    'base-uri': self,
    'form-action': self,
  })
