/** Names for a made-up organisation. */

export const firstNames = [
  ...['Ada', 'Aisha', 'Alba', 'Amir', 'Anja', 'Anton', 'Aoife', 'Arjun', 'Astrid', 'Bahar', 'Beatriz', 'Bela'],
  ...['Bram', 'Camille', 'Carlos', 'Chidi', 'Chloë', 'Dagny', 'Daniel', 'Deniz', 'Dora', 'Edda', 'Eero', 'Elif'],
  ...['Emeka', 'Esra', 'Fatima', 'Felix', 'Fiona', 'Gaspard', 'Greta', 'Hana', 'Hiro', 'Ida', 'Imani', 'Ines'],
  ...['Ivan', 'Jana', 'Jasper', 'João', 'Jonas', 'Kaito', 'Kateřina', 'Kerem', 'Lars', 'Leila', 'Liv', 'Lucía'],
  ...['Luka', 'Maëlle', 'Mairi', 'Malik', 'Marek', 'Mei', 'Mina', 'Mirko', 'Nadia', 'Naveen', 'Nils', 'Noor'],
  ...['Nuria', 'Ola', 'Olga', 'Omar', 'Oskar', 'Paula', 'Petra', 'Priya', 'Rafael', 'Ravi', 'Renée', 'Rosa'],
  ...['Sami', 'Sanna', 'Selma', 'Sina', 'Stella', 'Sven', 'Tariq', 'Tessa', 'Tomás', 'Uma', 'Valentin', 'Vera'],
  ...['Viggo', 'Wanda', 'Xavier', 'Yara', 'Yusuf', 'Zahra', 'Zoë', 'Zuzana'],
] as const

export const lastNames = [
  ...['Abara', 'Adeyemi', 'Almeida', 'Andersson', 'Aydin', 'Bakker', 'Banerjee', 'Bauer', 'Berger', 'Bianchi'],
  ...['Bjork', 'Blanchet', 'Brandt', 'Byrne', 'Carvalho', 'Castillo', 'Çelik', 'Chandra', 'Costa', 'Dalgaard'],
  ...['Demir', 'Diallo', 'Dimitrov', 'Doyle', 'Duarte', 'Eriksen', 'Falk', 'Farah', 'Ferrari', 'Fischer'],
  ...['Fontaine', 'Frost', 'Gallo', 'García', 'Gruber', 'Gupta', 'Haddad', 'Hakimi', 'Halonen', 'Hansen'],
  ...['Hartmann', 'Hofer', 'Horvat', 'Ibrahim', 'Ito', 'Ivanova', 'Jansen', 'Jensen', 'Kato', 'Kaya'],
  ...['Keller', 'Khan', 'Kimura', 'Klein', 'Kovač', 'Kowal', 'Kruger', 'Laine', 'Lambert', 'Larsen'],
  ...['Lefèvre', 'Lindqvist', 'Lopes', 'Maas', 'Mancini', 'Marin', 'Mbeki', 'Meier', 'Mendes', 'Moreau'],
  ...['Mori', 'Müller', 'Nagy', 'Navarro', 'Nkosi', 'Novák', 'Nyman', 'Okafor', 'Oliveira', 'Olsen'],
  ...['Ortega', 'Osman', 'Patel', 'Pereira', 'Petrov', 'Quinn', 'Ramos', 'Rao', 'Ricci', 'Rossi'],
  ...['Sato', 'Schmid', 'Sharma', 'Silva', 'Sørby', 'Tanaka', 'Torres', 'Vogel', 'Weiss', 'Yilmaz'],
] as const

/** The largest first. */
export const departments = [
  'Sales',
  'Engineering',
  'Customer Support',
  'Operations',
  'Manufacturing',
  'Marketing',
  'Finance',
  'People and Culture',
  'Research',
  'Legal',
] as const

/** The largest first. */
export const cities = [
  { city: 'Rotterdam', country: 'NL', locale: 'nl' },
  { city: 'Lisbon', country: 'PT', locale: 'pt' },
  { city: 'Gdansk', country: 'PL', locale: 'pl' },
  { city: 'Lyon', country: 'FR', locale: 'fr' },
  { city: 'Graz', country: 'AT', locale: 'de' },
  { city: 'Turku', country: 'FI', locale: 'fi' },
  { city: 'Bologna', country: 'IT', locale: 'it' },
  { city: 'Cork', country: 'IE', locale: 'en' },
  { city: 'Izmir', country: 'TR', locale: 'tr' },
  { city: 'Pune', country: 'IN', locale: 'en' },
] as const

/** Names of programmes, whose stages are chains of groups. */
export const birds = [
  ...['Heron', 'Kestrel', 'Plover', 'Siskin', 'Avocet', 'Dipper', 'Godwit', 'Linnet', 'Merlin', 'Osprey'],
  ...['Pipit', 'Redstart', 'Skylark', 'Tern', 'Wagtail', 'Whimbrel'],
] as const

/** Names of large groups. */
export const popularThings = ['Newsletter', 'Wiki readers', 'Print at the office', 'Guest Wi-Fi'] as const

export const robots = ['backup', 'build', 'deploy', 'metrics', 'reports', 'sync'] as const

export const tokenPurposes = ['ci', 'laptop', 'mail-client', 'notebook', 'script'] as const

/** A word in user names, addresses and paths. */
export const plain = (word: string): string =>
  word
    .normalize('NFD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll('ø', 'o')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
