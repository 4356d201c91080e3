/** Forgets the first entry of a map that has more than `most`: the one that was added longest ago. Call it after each addition. */
export function forgetOldest<Key>(map: Map<Key, unknown>, most: number): void {
  if (map.size > most) for (const oldest of map.keys().take(1)) map.delete(oldest)
}
