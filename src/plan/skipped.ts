/** `entry 3 (application "x") skipped: its conditions are false` @param isLeft the former run did not execute it */
export function skippedLine(index: number, displayName: string, [first]: readonly unknown[], isLeft = false): string {
  const name = first === undefined ? '' : ` ${JSON.stringify(first)}`
  return `entry ${index} (${displayName}${name}) skipped: ${isLeft ? 'the former run did not execute it' : 'its conditions are false'}`
}
