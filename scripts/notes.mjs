// Takes the notes of a release from CHANGELOG.md.

/** The section of the version; without a tag that of `Unreleased` will do, so that notes can be read before the release. */
export function releaseNotes(changelog, version, tag) {
  if (tag !== undefined && tag !== `v${version}`)
    throw new Error(`tag ${tag} is not the version of package.json: must be v${version}`);
  const found =
    section(changelog, version) ?? (tag === undefined ? section(changelog, "Unreleased") : undefined);
  if (found === undefined)
    throw new Error(`no notes for ${version}: CHANGELOG.md has no section "## ${version}"`);
  return found;
}

function section(changelog, title) {
  const [, ...sections] = changelog.split(/^## /m);
  const text = sections.find((each) => each.split(/\s/, 1)[0] === title);
  return text?.slice(text.indexOf("\n")).trim().concat("\n");
}
