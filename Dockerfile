# One image, two commands: the API (default) and the worker.
# The optional packages (Node and PostgreSQL) are left out: the base image has Node 26, and the
# deployment has PostgreSQL.

FROM node:26.10.0-bookworm-slim@sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2 AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=optional --ignore-scripts --no-audit --no-fund
COPY prisma ./prisma
COPY prisma.config.ts ./
RUN PRISMA_SCHEMA_ENGINE_BINARY=/bin/true npx prisma generate \
 && npm prune --omit=dev --omit=optional

FROM node:26.10.0-bookworm-slim@sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/src/db/generated ./src/db/generated
COPY package.json ./
COPY prisma ./prisma
COPY blueprints ./blueprints
COPY examples ./examples
COPY src ./src
COPY workers ./workers
# The first token is written there, unless BOOTSTRAP_TOKEN is set.
RUN mkdir /data && chown node /data
ENV DATA_DIR=/data
VOLUME /data
USER node
EXPOSE 9000
CMD ["node", "--max-semi-space-size=4", "src/server.ts"]
