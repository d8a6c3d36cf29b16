// What tests import as `vitest` inside a user-mode kernel: the same runner and the same matchers, without the rest.
import { JestAsymmetricMatchers, JestChaiExpect, JestExtend } from "@vitest/expect";
import * as chai from "chai";

export { afterAll, afterEach, beforeAll, beforeEach, describe, it } from "@vitest/runner";

chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(JestAsymmetricMatchers);

export const expect = (value: unknown, message?: string) => chai.expect(value, message);
