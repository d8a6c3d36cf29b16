// Which logging settings are allowed; checked first, so that all later errors can be logged.
import type { ProxyConfig } from "../config.ts";
import type { Gates } from "../gates/gates.ts";
import { uint31 } from "../units/numbers.ts";
import { quantityValue } from "../units/quantity.ts";
import { type FieldError, forbidden, invalid, required } from "./field-error.ts";

export function validateLogging(logging: ProxyConfig["logging"], enabled: Gates, root: string): FieldError[] {
  const { format, flushFrequency, verbosity } = logging;
  return [
    ...(flushFrequency.duration <= 0n
      ? [
          invalid(
            `${root}.flushFrequency`,
            "logging.flushFrequency",
            flushFrequency.duration,
            "must be greater than zero",
          ),
        ]
      : []),
    ...validateFormat(format, enabled, `${root}.format`),
    ...(verbosity > uint31.max
      ? [invalid(`${root}.verbosity`, "logging.verbosity", verbosity, `must be at most ${uint31.max}`)]
      : []),
    ...validateVModule(logging, `${root}.vmodule`),
    ...(["text", "json"] as const).flatMap((kind) =>
      validateOptions(logging, kind, enabled, `${root}.options.${kind}`),
    ),
  ];
}

function validateFormat(format: string, enabled: Gates, path: string): FieldError[] {
  if (format === "text") return [];
  if (format !== "json")
    return [invalid(path, "logging.format", format, 'unsupported log format: write "text" or "json"')];
  return enabled("LoggingBetaOptions")
    ? []
    : [forbidden(path, "logging.format", "log format json needs the feature gate LoggingBetaOptions")];
}

function validateVModule({ vmodule, format }: ProxyConfig["logging"], path: string): FieldError[] {
  const setting = "logging.vmodule";
  const errors = vmodule.flatMap(({ filePattern, verbosity }, i) => [
    ...(filePattern === "" ? [required(`${path}[${i}]`, setting, "the file pattern must not be empty")] : []),
    ...(/[=,]/.test(filePattern)
      ? [invalid(`${path}[${i}]`, setting, filePattern, "the file pattern must not contain = or a comma")]
      : []),
    ...(verbosity > uint31.max
      ? [invalid(`${path}[${i}]`, setting, verbosity, `must be at most ${uint31.max}`)]
      : []),
  ]);
  const misplaced = vmodule.length > 0 && format !== "text";
  return misplaced ? [forbidden(path, setting, "only the text log format has it"), ...errors] : errors;
}

function validateOptions(
  { options }: ProxyConfig["logging"],
  kind: "text" | "json",
  enabled: Gates,
  path: string,
): FieldError[] {
  if (enabled("LoggingAlphaOptions")) return [];
  const detail = "needs the feature gate LoggingAlphaOptions";
  const { splitStream, infoBufferSize } = options[kind];
  return [
    ...(splitStream ? [forbidden(`${path}.splitStream`, `logging.options.${kind}.splitStream`, detail)] : []),
    ...(quantityValue(infoBufferSize) !== 0n
      ? [forbidden(`${path}.infoBufferSize`, `logging.options.${kind}.infoBufferSize`, detail)]
      : []),
  ];
}
