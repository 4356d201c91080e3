/**
 * Waits for an answer, but no longer than `withinMs`. The work behind it goes on; when it fails later, nothing happens.
 *
 * @param late makes the answer in its place; it may throw
 */
export function limitTime<Answer, Late = never>(
  answer: Promise<Answer>,
  withinMs: number,
  late: () => Late,
): Promise<Answer | Late> {
  const { promise: isLate, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, withinMs)
  return Promise.race([answer, isLate.then(late)]).finally(() => clearTimeout(timer))
}
