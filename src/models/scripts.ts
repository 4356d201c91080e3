import type { Syntax } from './syntax.ts'

/** All scripts of Unicode that a letter can have, by their codes of ISO 15924. A test knows when one is missing. */
const scripts =
  `Adlm Aghb Ahom Arab Armi Armn Avst Bali Bamu Bass Batk Beng Berf Bhks Bopo Brah Brai Bugi Buhd Cakm Cans Cari
  Cham Cher Chrs Copt Cpmn Cprt Cyrl Deva Diak Dogr Dsrt Dupl Egyp Elba Elym Ethi Gara Geor Glag Gong Gonm Goth Gran Grek Gujr
  Gukh Guru Hang Hani Hano Hatr Hebr Hira Hluw Hmng Hmnp Hung Ital Java Kali Kana Kawi Khar Khmr Khoj Kits Knda Krai Kthi Lana
  Laoo Latn Lepc Limb Lina Linb Lisu Lyci Lydi Mahj Maka Mand Mani Marc Medf Mend Merc Mero Mlym Modi Mong Mroo Mtei Mult Mymr
  Nagm Nand Narb Nbat Newa Nkoo Nshu Ogam Olck Onao Orkh Orya Osge Osma Ougr Palm Pauc Perm Phag Phli Phlp Phnx Plrd Prti Rjng
  Rohg Runr Samr Sarb Saur Sgnw Shaw Shrd Sidd Sidt Sind Sinh Sogd Sogo Sora Soyo Sund Sunu Sylo Syrc Tagb Takr Tale Talu Taml
  Tang Tavt Tayo Telu Tfng Tglg Thaa Thai Tibt Tirh Tnsa Todr Tols Toto Tutg Ugar Vaii Vith Wara Wcho Xpeo Xsux Yezi Yiii Zanb`
    .split(/\s+/)
    .map((script) => [script])

/** Scripts that are written together: UTS 39, section 5.2, "Highly Restrictive". */
const together = [
  ['Latn', 'Hani', 'Hira', 'Kana'],
  ['Latn', 'Hani', 'Hang'],
  ['Latn', 'Hani', 'Bopo'],
]

const letters = /[\p{L}\p{M}]/gu

/** Letters that belong to no script or to each one, such as the ordinal sign or an accent, fit all. */
const only = (of: readonly string[]) =>
  new RegExp(`^[${[...of, 'Zyyy', 'Zinh'].map((script) => `\\p{scx=${script}}`).join('')}]*$`, 'u')

const sets = [['Latn'], ...together, ...scripts]
/** Made when they are first needed: nearly all names are Latin. */
const patterns = new Map<readonly string[], RegExp>()

/** Letters of one script, or of those that are written together. Digits and signs are of none. */
export const oneScript: Syntax = (text) => {
  const written = (text.normalize('NFC').match(letters) ?? []).join('')
  const isOne = sets.some((of) => patterns.getOrInsertComputed(of, only).test(written))
  return isOne ? undefined : 'Must have letters of one script, such as Latin or Cyrillic.'
}
