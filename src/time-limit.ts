/**
 * Waits for an answer, but no longer than `withinMs`. The work behind it goes on; when it fails later, nothing happens.
 *
 * @param late makes the answer in its place; it may throw
 */
export const limitTime = <Answer, Late = never>(
  answer: Promise<Answer>,
  withinMs: number,
  late: () => Late,
): Promise<Answer | Late> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      try {
        resolve(late())
      } catch (error) {
        reject(error)
      }
    }, withinMs)
    const clear = () => clearTimeout(timer)
    answer.then(resolve, reject).then(clear, clear)
  })
