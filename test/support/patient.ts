import { bePatient } from '../../src/db/in-time.ts'

// A busy machine makes the database slow, not away. Tests of a database that hangs set the product's own limit, `quickMs`.
bePatient(15_000)
