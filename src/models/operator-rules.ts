/** Rules about values that belong to the operator of a service. */
export type OperatorRules = {
  /** Schemes of launch URLs. */
  readonly launchSchemes: readonly string[]
  /** Whether all hosts below a domain belong to one owner. */
  readonly isParentDomain: (domain: string) => boolean
  readonly isPublicSuffix: (domain: string) => boolean
}

let known: OperatorRules | undefined

/** Sets the rules, once, at the start of a process. The command line program has none: the service checks what it sends. */
export function setOperatorRules(rules: OperatorRules): void {
  known = rules
}

export const operatorRules = (): OperatorRules | undefined => known
