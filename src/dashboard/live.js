/*
 * Keeps <main data-live> up to date: it asks for the page's own address and changes what is different. Everything works
 * without it, by reloading.
 */
{
  /* While no request waits for a change; while one does, for the age of things. */
  const everyMs = 3_000
  const restMs = 30_000
  /* After a change: some parts of a page are read once a second. */
  const afterMs = 2_000
  const leastMs = 1_000
  const withinMs = 10_000
  const main = document.querySelector('main[data-live]')
  const status = document.getElementById('live')
  let isStopped = false
  let isAsking = false
  let failingSince
  let askedAt = performance.now()
  let timer

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

  async function refresh() {
    askedAt = performance.now()
    const answer = await fetch(location.href, {
      /* Of what is read again and again, the log has no line. */
      headers: { Accept: 'text/html', 'Gatewright-Refresh': '1' },
      signal: AbortSignal.timeout(withinMs),
    })
    /* The session has ended: the login leads back to this address. */
    if (answer.redirected || answer.status === 401) return location.reload()
    if (!answer.ok) throw new Error(`it answers ${answer.status}`)
    const found = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main')
    if (found === null || isStopped) return
    Idiomorph.morph(main, found, { ignoreActiveValue: true, callbacks })
    say('Updates by itself. ')
  }

  /*
   * Another request waits for a change, which says when to ask. There is none while the page is hidden or stopped; while it
   * fails, the page asks by itself.
   */
  const waitS = 25
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  let waiting
  let isHeard = false
  let revision
  /* Something has changed since the page was last asked for. */
  let isWanted = false

  async function changed(signal) {
    const query = new URLSearchParams({ wait: waitS, ...(revision !== undefined && { since: revision }) })
    const answer = await fetch(`${main.dataset.live}?${query}`, {
      headers: { Accept: 'application/json', 'Gatewright-Refresh': '1' },
      signal: AbortSignal.any([signal, AbortSignal.timeout(1_000 * waitS + withinMs)]),
    })
    if (answer.redirected || answer.status === 401) return location.reload()
    if (!answer.ok) throw new Error(`it answers ${answer.status}`)
    const { revision: found } = await answer.json()
    if (found !== revision) soon()
    revision = found
  }

  async function listen() {
    if (isIdle() || waiting !== undefined) return
    const own = new AbortController()
    waiting = own
    try {
      while (!own.signal.aborted) {
        await changed(own.signal)
        isHeard = waiting === own
        /* Where much changes, it is asked once a second. */
        await pause(leastMs)
      }
    } catch {
      /* The page asks by itself, and listens again when that is answered. */
    }
    if (waiting === own) unlisten()
  }

  function unlisten() {
    waiting?.abort()
    waiting = undefined
    isHeard = false
  }

  const isIdle = () => isStopped || document.hidden

  function next(inMs) {
    clearTimeout(timer)
    if (!isIdle()) timer = setTimeout(run, inMs)
  }

  async function run() {
    if (isIdle() || isAsking) return
    isAsking = true
    const wasWanted = isWanted
    isWanted = false
    try {
      await refresh()
      failingSince = undefined
    } catch {
      failingSince ??= clock()
      say(`Not up to date since ${failingSince}: the service does not answer. `)
    }
    isAsking = false
    if (failingSince === undefined) void listen()
    if (isWanted) soon()
    else if (isHeard) next(wasWanted ? afterMs : restMs)
    else next(everyMs)
    document.dispatchEvent(new Event('gatewright:asked'))
  }

  /* A change asks for the page at once, and at most once a second. */
  function soon() {
    isWanted = true
    next(Math.max(0, askedAt + leastMs - performance.now()))
  }

  const follow = () => {
    void listen()
    soon()
  }

  /* On the page that asks for a zone: that of the browser, which the server cannot know. */
  const here = document.getElementById('here')
  if (here !== null) {
    here.value = Intl.DateTimeFormat().resolvedOptions().timeZone
    here.textContent = `${here.value}, as this browser has it`
    here.hidden = false
  }

  if (main !== null && status !== null) {
    const button = document.createElement('button')
    button.type = 'button'
    const show = () => {
      button.textContent = isStopped ? 'Update again' : 'Stop updating'
    }
    button.addEventListener('click', () => {
      isStopped = !isStopped
      show()
      say(isStopped ? `Stopped at ${clock()}. ` : 'Updates by itself. ')
      if (isStopped) unlisten()
      else follow()
    })
    status.append('Updates by itself. ', button)
    show()
    status.hidden = false
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) return follow()
      clearTimeout(timer)
      unlisten()
    })
    document.addEventListener('gatewright:changed', soon)
    void listen()
    next(everyMs)
  }
}
