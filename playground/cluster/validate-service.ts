// Validates Services beyond the types of their fields. Pure.
import { contains, isLoopback, parseAddress, parseCidr } from "../../src/model/address.ts";
import { type FieldError, invalidValue, valueError } from "../api/objects/fields.ts";
import { type ApiObject, type Draft, dig, isMap, scalar } from "../api/objects/object.ts";
import { serviceCIDRs } from "../net/layout.ts";
import { needsOf, portsIn, type Spec, specOf } from "./service-shape.ts";

/** `draft` has been fitted to its type. */
export function serviceErrors(draft: Draft, old: ApiObject | null): FieldError[] {
  const [spec, before] = [specOf(draft), specOf(old)];
  return [
    ...portErrors(spec),
    ...addressErrors(spec, before),
    ...familyErrors(spec, before),
    ...policyErrors(spec),
    ...externalErrors(spec),
    ...labelErrors("spec.selector", spec.selector),
  ];
}

const part = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** A label name may have a domain prefix; a value may be empty. */
export function labelErrors(path: string, labels: unknown): FieldError[] {
  const rule =
    "must consist of letters, digits, '-', '_' or '.', begin and end with a letter or digit, and have at most 63";
  return Object.entries(isMap(labels) ? labels : {}).flatMap(([name, text]) => [
    ...(part.test(name.slice(name.indexOf("/") + 1))
      ? []
      : [invalidValue(path, name, `a name ${rule}; for example "app"`)]),
    ...(text === "" || text === null || part.test(scalar(text))
      ? []
      : [invalidValue(path, text, `a value ${rule}; for example "web"`)]),
  ]);
}

const portName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const targetName = /^(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*$/;

function portErrors(spec: Spec): FieldError[] {
  const { type = "ClusterIP" } = spec;
  const needs = needsOf(spec);
  const ports = portsIn(spec);
  if (ports.length === 0 && needs.clusterIP && spec.clusterIP !== "None")
    return [valueError("spec.ports", "Required value: for example [{port: 80}]")];
  const isPort = (number: unknown) => typeof number !== "number" || (number >= 1 && number <= 65_535);
  const seen = new Set<string>();
  return ports.flatMap((port, i) => {
    const path = `spec.ports[${i}]`;
    const { name = "", nodePort, targetPort } = port;
    const key = `${scalar(port.port)}/${scalar(port.protocol) || "TCP"}`;
    const found: (FieldError | false)[] = [
      !isPort(port.port) && invalidValue(`${path}.port`, port.port, "must be from 1 to 65535"),
      !isPort(targetPort) && invalidValue(`${path}.targetPort`, targetPort, "must be from 1 to 65535"),
      typeof targetPort === "string" &&
        !targetName.test(targetPort) &&
        invalidValue(
          `${path}.targetPort`,
          targetPort,
          'must be a number or the name of a container port, at most 15 letters, digits and "-"; for example "http"',
        ),
      typeof nodePort === "number" &&
        !needs.nodePorts &&
        valueError(`${path}.nodePort`, `Forbidden: may not be used when \`type\` is '${scalar(type)}'`),
      typeof nodePort === "number" &&
        (nodePort < 30_000 || nodePort > 32_767) &&
        invalidValue(`${path}.nodePort`, nodePort, "provided port is not in the valid range 30000-32767"),
      ports.length > 1 &&
        name === "" &&
        valueError(`${path}.name`, "Required value: there are several ports"),
      name !== "" &&
        !portName.test(scalar(name)) &&
        invalidValue(
          `${path}.name`,
          name,
          `must consist of lower case letters, digits and '-'; for example "http"`,
        ),
      name !== "" &&
        seen.has(scalar(name)) &&
        valueError(`${path}.name`, `Duplicate value: ${JSON.stringify(name)}`),
      seen.has(key) && valueError(path, `Duplicate value: ${JSON.stringify(key)}`),
    ];
    seen.add(key).add(scalar(name));
    return found.filter((each) => each !== false);
  });
}

function addressErrors(spec: Spec, before: Spec): FieldError[] {
  const { type = "ClusterIP", clusterIP = "", clusterIPs } = spec;
  const path = "spec.clusterIP";
  const [first, had] = [[clusterIPs].flat()[0], scalar(before.clusterIP)];
  if (Array.isArray(clusterIPs) && clusterIP === "" && had === "")
    return [invalidValue("spec.clusterIPs", clusterIPs, "must be empty when `clusterIP` is not specified")];
  if (clusterIP === "") return [];
  if (type === "ExternalName")
    return [valueError(path, "Forbidden: may not be used when `type` is 'ExternalName'")];
  if (had !== "" && had !== clusterIP)
    return [invalidValue(path, clusterIP, `may not change once set: it is ${had}`)];
  if (first !== undefined && first !== clusterIP)
    return [invalidValue("spec.clusterIPs[0]", first, `must be spec.clusterIP, ${scalar(clusterIP)}`)];
  if (clusterIP === "None")
    return needsOf(spec).nodePorts
      ? [invalidValue(path, clusterIP, `a ${scalar(type)} Service requires a cluster IP`)]
      : [];
  return [clusterIPs ?? clusterIP].flat().flatMap((each: unknown) => {
    const address = parseAddress(scalar(each));
    const isInside = address !== null && Object.values(serviceCIDRs).some((cidr) => contains(cidr, address));
    return isInside
      ? []
      : [invalidValue(path, each, `must be an address of ${Object.values(serviceCIDRs).join(" or ")}`)];
  });
}

function familyErrors({ ipFamilies, ipFamilyPolicy = "SingleStack" }: Spec, before: Spec): FieldError[] {
  if (!Array.isArray(ipFamilies)) return [];
  const [first, second] = ipFamilies as unknown[];
  const unknown = ipFamilies.filter((name) => name !== "IPv4" && name !== "IPv6");
  const had = [before.ipFamilies ?? []].flat();
  const found: (FieldError | false)[] = [
    ...unknown.map((name: unknown) =>
      valueError(
        "spec.ipFamilies",
        `Unsupported value: ${JSON.stringify(name)}: supported values: "IPv4", "IPv6"`,
      ),
    ),
    second !== undefined &&
      second === first &&
      valueError("spec.ipFamilies[1]", `Duplicate value: ${JSON.stringify(second)}`),
    had.length > 0 &&
      had[0] !== first &&
      invalidValue("spec.ipFamilies[0]", first, `may not change once set: it is ${scalar(had[0])}`),
    second !== undefined &&
      had.length < 2 &&
      ipFamilyPolicy === "SingleStack" &&
      invalidValue(
        "spec.ipFamilyPolicy",
        ipFamilyPolicy,
        "must be 'RequireDualStack' or 'PreferDualStack' when there are two families",
      ),
  ];
  return found.filter((each) => each !== false);
}

function policyErrors(spec: Spec): FieldError[] {
  const { type = "ClusterIP", externalTrafficPolicy: policy } = spec;
  const needs = needsOf(spec);
  const seconds = dig(spec, "sessionAffinityConfig.clientIP.timeoutSeconds");
  const found: (FieldError | false)[] = [
    policy === "Local" &&
      !needs.outside &&
      invalidValue(
        "spec.externalTrafficPolicy",
        policy,
        `a Service of type ${scalar(type)} has no external traffic`,
      ),
    type === "ExternalName" &&
      scalar(spec.externalName) === "" &&
      valueError("spec.externalName", 'Required value: for example "example.com"'),
    typeof seconds === "number" &&
      (seconds < 1 || seconds > 86_400) &&
      invalidValue(
        "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        seconds,
        "must be from 1 to 86400, a day",
      ),
    spec.healthCheckNodePort !== undefined &&
      !needs.healthCheck &&
      invalidValue(
        "spec.healthCheckNodePort",
        spec.healthCheckNodePort,
        "may only be used when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
      ),
  ];
  return found.filter((each) => each !== false);
}

function externalErrors(spec: Spec): FieldError[] {
  const ranges = textsIn(spec.loadBalancerSourceRanges);
  const addresses = textsIn(spec.externalIPs);
  const misplaced = ranges.length > 0 && !needsOf(spec).loadBalancer;
  return [
    ...(misplaced
      ? [
          valueError(
            "spec.loadBalancerSourceRanges",
            "Forbidden: may only be used when `type` is 'LoadBalancer'",
          ),
        ]
      : []),
    ...ranges.flatMap((range, i) =>
      parseCidr(range.trim()) === null
        ? [
            invalidValue(
              `spec.loadBalancerSourceRanges[${i}]`,
              range,
              'must be a network; for example "203.0.113.0/24"',
            ),
          ]
        : [],
    ),
    ...addresses.flatMap((address, i) => {
      const why = whyNotExternalIP(address);
      return why === null ? [] : [invalidValue(`spec.externalIPs[${i}]`, address, why)];
    }),
  ];
}

function whyNotExternalIP(text: string): string | null {
  const address = parseAddress(text);
  if (address === null) return 'must be an address; for example "192.0.2.10"';
  const forbidden = ["0.0.0.0/32", "::/128", "169.254.0.0/16", "fe80::/10", "224.0.0.0/24", "ff02::/16"];
  const isForbidden = isLoopback(address) || forbidden.some((cidr) => contains(cidr, address));
  return isForbidden ? "may not be a loopback, link-local or unspecified address" : null;
}

function textsIn(list: unknown): string[] {
  return Array.isArray(list) ? list.filter((each) => typeof each === "string") : [];
}
