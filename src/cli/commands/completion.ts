import { type Command, type Commands, readArguments } from '../arguments.ts'
import { exitCodes, UsageError } from '../exit.ts'

/** `gatewright completion`: commands and options for a shell. */

const usage = `gatewright completion bash|zsh|fish

Prints a completion script:
  bash   gatewright completion bash > /etc/bash_completion.d/gatewright
  zsh    gatewright completion zsh > "\${fpath[1]}/_gatewright"
  fish   gatewright completion fish > ~/.config/fish/completions/gatewright.fish
`

type Known = { readonly name: string; readonly summary: string; readonly flags: readonly string[] }

async function run(args: readonly string[], commands: Commands): Promise<number> {
  const { positionals } = readArguments(args, {})
  const [shell = '', ...others] = positionals
  const print = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
  if (print === undefined || others.length > 0) throw new UsageError('completion takes bash, zsh or fish.')
  process.stdout.write(print(await knownCommands(commands)))
  return exitCodes.done
}

async function knownCommands(commands: Commands): Promise<Known[]> {
  return Promise.all(
    Object.entries(commands).map(async ([name, { summary, load }]) => {
      const { command } = await load()
      return { name, summary, flags: [...Object.keys(command.options), 'help'].map((each) => `--${each}`) }
    }),
  )
}

const scripts: Readonly<Record<string, (known: readonly Known[]) => string>> = {
  bash: (known) => `_gatewright() {
  local current="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${known.map(({ name }) => name).join(' ')}" -- "$current"))
    return
  fi
  if [[ "$current" == -* ]]; then
    case "\${COMP_WORDS[1]}" in
${known.map(({ name, flags }) => `      ${name}) COMPREPLY=($(compgen -W "${flags.join(' ')}" -- "$current")) ;;\n`).join('')}    esac
    return
  fi
  COMPREPLY=($(compgen -f -- "$current"))
}
complete -o filenames -F _gatewright gatewright
`,
  zsh: (known) => `#compdef gatewright
if (( CURRENT == 2 )); then
  local -a names
  names=(${known.map(({ name, summary }) => `'${name}:${summary}'`).join(' ')})
  _describe command names
else
  case "$words[2]" in
${known.map(({ name, flags }) => `    ${name}) [[ "$PREFIX" == -* ]] && compadd -- ${flags.join(' ')} || _files ;;\n`).join('')}  esac
fi
`,
  fish: (known) =>
    known
      .flatMap(({ name, summary, flags }) => [
        `complete -c gatewright -n __fish_use_subcommand -f -a ${name} -d '${summary}'`,
        ...flags.map((flag) => `complete -c gatewright -n '__fish_seen_subcommand_from ${name}' -l ${flag.slice(2)}`),
      ])
      .join('\n')
      .concat('\n'),
}

export const command: Command = { usage, options: {}, run }
