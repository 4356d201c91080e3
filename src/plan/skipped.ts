/** `entry 3 (application "x") skipped: its conditions are false` */
export function skippedLine(index: number, displayName: string, [first]: readonly unknown[]): string {
  const name = first === undefined ? '' : ` ${JSON.stringify(first)}`
  return `entry ${index} (${displayName}${name}) skipped: its conditions are false`
}
