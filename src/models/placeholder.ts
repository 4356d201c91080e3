/**
 * Texts that stand for a value, and that some program was to replace. A pipeline that forgot it would give an application a
 * secret that all readers of the repository know, or a host that does not exist.
 */

/** Forms that no program generates: each begins and ends with signs of its own, around a name. */
const forms: readonly RegExp[] = [
  // Tags of YAML, ours and those of other programs, behind quotes: "!Env NAME".
  /^!(env|file|context|format|if|condition|enumerate|index|value|atindex|find|keyof|secret|vault|env_var|ref|sub|getatt|reference)\s+\S/i,
  // ${NAME}, ${NAME:-default}, ${{ secrets.NAME }}, {$NAME}, $(NAME), $NAME
  /^\$\{\s*[a-z_][\w.:/-]*\s*([:?+=-][^{}]*)?\}$/i,
  /^\$?\{\{[^{}]*\}\}$/,
  /^\{\$[a-z_]\w*\}$/i,
  /^\$\(\s*[a-z_][\w ./-]*\)$/i,
  /^\$[A-Z]+(_[A-Z0-9]+)*$/,
  // %NAME%, %(name)s, {NAME}, {env:NAME}, {% name %}, <%= name %>, #{NAME}#, __NAME__, @NAME@
  /^%[A-Z]+(_[A-Z0-9]+)*%$/,
  /^%\([a-z_]\w*\)s$/i,
  /^\{[A-Z]+(_[A-Z0-9]+)*\}$/,
  /^\{(env|file|secret|vault)[:.][^{}]+\}$/i,
  /^(\{%[\s-].*%\}|<%[=\s-].*%>)$/,
  /^#\{[\w.]+\}#?$/,
  /^(__|@@?)[A-Z][A-Z0-9_]+(__|@@?)$/,
  // <name>, <your secret here>
  /^<[A-Za-z]([a-z\d_.:/#'-]*|[A-Z\d_.:/#'-]*|[\w.:/'-]*( [\w.:/'-]+)+)>$/,
  // $__env{NAME}
  /^\$__[a-z]+\{[^{}]+\}$/,
  // References of other programs to a store of secrets: SOPS, 1Password, vals, Vault.
  /^(ENC\[AES256_GCM,|\$ANSIBLE_VAULT;|op:\/\/|ref\+[a-z]+:\/\/|vault:[\w/.-]+#)/,
  /^((change|replace)[-_ ]?(me|this|it)|todo|fixme|tbd|your[-_ ]([a-z0-9]+[-_ ])*(secret|token|password|key)([-_ ]here)?)$/i,
]

/** Whether a whole secret is a placeholder. */
export const isPlaceholder = (text: string): boolean => {
  const trimmed = text.trim()
  return forms.some((form) => form.test(trimmed))
}

/** Placeholders inside a text; a pattern has backslashes in them. */
const inside = /\$\\?\{[^{}]*\}|\{\{[^{}]*\}\}/g

/** Whether a text that is no secret has a part to be replaced: `x.${ZONE}`. Prose may have one: it holds spaces. */
export const hasPlaceholder = (text: string): boolean => {
  const rest = text.trim().replace(inside, '')
  return (rest !== text.trim() && !/\s/.test(rest)) || /^!(Env|File|Context)\s+\S/.test(rest)
}
