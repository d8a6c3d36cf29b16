// Names that every JavaScript object has are ordinary names in flags and in the configuration file.
import { afterEach, describe, expect, it } from "vitest";
import { completeConfig } from "./complete.ts";
import { plainFile, unfold } from "./config.ts";
import { paths } from "./file/fields.ts";
import { readFlags } from "./flags/read.ts";

const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf"];
const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
const sections = [
  "",
  ...new Set(paths.filter((path) => path.includes(".")).map((path) => path.split(".")[0]!)),
];
const untouched = Object.getOwnPropertyNames(Object.prototype).join();

afterEach(() => {
  const now = Object.getOwnPropertyNames(Object.prototype).join();
  if (now !== untouched) throw new Error(`Object.prototype was changed: ${now}`);
});

function fromFlags(...argv: string[]) {
  const read = readFlags(argv);
  if (!read.ok) throw new Error(read.reason);
  return completeConfig(read.value.given, null);
}

function fromFile(text: string) {
  return completeConfig({}, { name: "c", text: `${header}${text}` });
}

describe.each(names)("security/1: %s", (name) => {
  it("is a feature gate like any other, which does not exist", () => {
    const error = `failed complete: unrecognized feature gate: ${name}`;
    expect(fromFlags(`--feature-gates=${name}=true`)).toMatchObject({ ok: false, error });
    expect(fromFlags(`--feature-gates=${name}=true`, "--feature-gates=A=true")).toMatchObject({
      error: expect.stringContaining(`unrecognized feature gate: ${name}`),
    });
    expect(fromFile(`featureGates: {${name}: true}`)).toMatchObject({ ok: false, error });
    expect(fromFile(`featureGates: {"${name}": {polluted: true}}`)).toMatchObject({ ok: false });
  });

  it.each(sections)("is an unknown field in section %j, and changes nothing", (section) => {
    const own = `${name}: {mode: ipvs, maxPerCore: 7, polluted: true}`;
    const found = fromFile(section === "" ? own : `${section}: {${own}}`);
    const plain = fromFile("");
    if (!found.ok || !plain.ok) throw new Error("refused");
    expect(found.notices.join()).toContain(`"${section === "" ? "" : `${section}.`}${name}" is ignored`);
    expect(plainFile(unfold(found.config))).toEqual(plainFile(unfold(plain.config)));
  });

  it("is a file pattern of vmodule", () => {
    const item = { filePattern: name, verbosity: 3 };
    expect(fromFlags(`--vmodule=${name}=3`)).toMatchObject({
      ok: true,
      config: { logging: { vmodule: [item] } },
    });
    const inFile = fromFile(`logging: {vmodule: [{filePattern: ${name}, verbosity: 3, ${name}: 1}]}`);
    expect(inFile).toMatchObject({ ok: true, config: { logging: { vmodule: [item] } } });
  });

  it("is no mode, no local detector, no format, no unit and no flag", () => {
    for (const field of ["mode", "detectLocalMode", "bindAddress"])
      expect(fromFile(`${field}: ${name}`)).toMatchObject({ ok: false });
    expect(fromFile(`logging: {format: ${name}}`)).toMatchObject({ ok: false });
    expect(fromFile(`configSyncPeriod: 1${name}`)).toMatchObject({ ok: false });
    expect(readFlags([`--${name}=1`])).toMatchObject({ ok: false });
  });
});
