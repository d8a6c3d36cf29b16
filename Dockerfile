# The image: the two bundled programs, the one native library they need, and iptables. Build: docker build -t turnout .
# A release pins its base image: --build-arg NODE_DIGEST=sha256:…
ARG NODE=26-bookworm-slim
ARG NODE_DIGEST

FROM node:${NODE}${NODE_DIGEST:+@${NODE_DIGEST}} AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY scripts/build.mjs scripts/bundle.mjs scripts/
COPY src src
COPY tsconfig.json ./
RUN node scripts/build.mjs \
 && npm prune --omit=dev --no-audit --no-fund --ignore-scripts \
 && rm -rf node_modules/node-linux-* node_modules/.bin \
 && find node_modules -type d -empty -delete

# The base image brings Node.js, so the pinned one is not copied.
FROM node:${NODE}${NODE_DIGEST:+@${NODE_DIGEST}}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends iptables ipset \
 && rm -rf /var/lib/apt/lists/* /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn*
COPY --from=build /src/dist/*.cjs /opt/turnout/dist/
COPY --from=build /src/node_modules /opt/turnout/node_modules
COPY bin /opt/turnout/bin
COPY LICENSE /opt/turnout/
RUN ln -s /opt/turnout/bin/kube-proxy /opt/turnout/bin/turnout /usr/local/bin/
ENV NODE_ENV=production
# As in the image of kube-proxy: a DaemonSet that names only arguments works too.
ENTRYPOINT ["/usr/local/bin/kube-proxy"]
