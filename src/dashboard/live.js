/*
 * Keeps <main data-live> up to date: it asks for the page's own address and changes what is different. Without it,
 * a reload does the same.
 */
{
  /* The longest wait for a change. Then the page is read anyway: it says how old things are. */
  const waitS = 30
  /* The pause after a change: some parts of a page are read once a second. */
  const waitAfterChangeS = 2
  /* The pause while no request can wait for a change. */
  const everyMs = 3_000
  const leastMs = 1_000
  const withinMs = 10_000
  const main = document.querySelector('main[data-live]')
  const status = document.getElementById('live')
  let isStopped = false
  let failingSince
  let revision
  let wasChange = false
  let askedAt = performance.now()
  /* Ends the requests and the pauses at work, when the page is hidden or stopped. */
  let following = new AbortController()

  const zone = document.getElementById('times')?.dataset.zone ?? 'UTC'
  const clock = () => `${new Date().toLocaleTimeString('en-GB', { timeZone: zone })} ${zone}`

  /* What a person has opened, typed or chosen stays. */
  const callbacks = {
    beforeNodeMorphed: (node) => !(node instanceof HTMLFormElement),
    beforeAttributeUpdated: (name, node) =>
      name !== 'checked' && !(name === 'open' && node instanceof HTMLDetailsElement),
  }

  const say = (text) => {
    if (status.firstChild.data !== text) status.firstChild.data = text
    status.classList.toggle('alert', text.startsWith('Not'))
  }

  let endPause = () => {}
  const pause = (ms) =>
    new Promise((resolve) => {
      endPause = resolve
      setTimeout(resolve, ms)
    })

  async function ask(address, accept, ms, signal) {
    const answer = await fetch(address, {
      /* The log has no line of requests that are repeated. */
      headers: { Accept: accept, 'Gatewright-Refresh': '1' },
      signal: AbortSignal.any([signal, AbortSignal.timeout(ms)]),
    })
    /* The session has ended: the login leads back to this address. */
    if (answer.redirected || answer.status === 401) {
      following.abort()
      location.reload()
    }
    if (!answer.ok) throw new Error(`it answers ${answer.status}`)
    return answer
  }

  async function refresh(signal) {
    askedAt = performance.now()
    try {
      const answer = await ask(location.href, 'text/html', withinMs, signal)
      const found = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main')
      if (found !== null && !signal.aborted) Idiomorph.morph(main, found, { ignoreActiveValue: true, callbacks })
      failingSince = undefined
    } catch {
      failingSince ??= clock()
    }
    if (!signal.aborted)
      say(
        failingSince === undefined
          ? 'Updates by itself. '
          : `Not up to date since ${failingSince}: the service does not answer. `,
      )
    document.dispatchEvent(new Event('gatewright:asked'))
  }

  /* Waits for a change, and at least until a second after the page was last asked for. */
  async function untilChange(signal) {
    if (failingSince !== undefined) return pause(everyMs)
    const wait = wasChange ? waitAfterChangeS : waitS
    const query = new URLSearchParams({ wait, ...(revision !== undefined && { since: revision }) })
    try {
      const answer = await ask(`${main.dataset.live}?${query}`, 'application/json', 1_000 * wait + withinMs, signal)
      const { revision: found } = await answer.json()
      wasChange = found !== revision
      revision = found
    } catch {
      return pause(everyMs)
    }
    return pause(Math.max(0, askedAt + leastMs - performance.now()))
  }

  async function follow() {
    following = new AbortController()
    const { signal } = following
    while (!signal.aborted) {
      await refresh(signal)
      await untilChange(signal)
    }
  }

  /* On the page that asks for a zone: that of the browser, which the server cannot know. */
  const here = document.getElementById('here')
  if (here !== null) {
    here.value = Intl.DateTimeFormat().resolvedOptions().timeZone
    here.textContent = `${here.value}, as this browser has it`
    here.hidden = false
  }

  /* A browser lets pages copy by TLS, and on this machine. */
  if (navigator.clipboard !== undefined) document.documentElement.classList.add('copies')
  document.addEventListener('click', ({ target }) => {
    const button = target.closest('button[data-copy]')
    if (button === null) return
    navigator.clipboard.writeText(button.dataset.copy.replace('{origin}', location.origin)).then(
      () => (button.textContent = 'Copied'),
      () => (button.textContent = 'Not copied'),
    )
  })

  if (main !== null && status !== null) {
    const button = document.createElement('button')
    button.type = 'button'
    const show = () => {
      button.textContent = isStopped ? 'Update again' : 'Stop updating'
      say(isStopped ? `Stopped at ${clock()}. ` : 'Updates by itself. ')
    }
    status.append('', button)
    show()
    status.hidden = false
    const restart = () => {
      following.abort()
      endPause()
      if (!isStopped && !document.hidden) void follow()
    }
    button.addEventListener('click', () => {
      isStopped = !isStopped
      show()
      restart()
    })
    document.addEventListener('visibilitychange', restart)
    if (!document.hidden) void untilChange(following.signal).then(restart)
  }
}
