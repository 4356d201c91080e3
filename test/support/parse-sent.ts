import type { Blueprint } from '../../src/document/document.ts'
import { readDocument, readSentText } from '../../src/document/yaml.ts'

/** Parses text that a caller sent as a blueprint. @throws {Problem} `invalid` */
export const parseSent = (text: string): Blueprint => readDocument(readSentText(text))
