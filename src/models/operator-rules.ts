/** Rules about values that belong to the operator of a service. */
export type OperatorRules = {
  /** Schemes of launch URLs. */
  readonly launchSchemes: readonly string[]
  /** Whether all hosts below a domain are of one owner. */
  readonly isParentDomain: (domain: string) => boolean
  readonly isPublicSuffix: (domain: string) => boolean
}

let known: OperatorRules | undefined

/** Once, at the start of a process. The command line program has none: the service judges what it sends. */
export function setOperatorRules(rules: OperatorRules): void {
  known = rules
}

export const operatorRules = (): OperatorRules | undefined => known
