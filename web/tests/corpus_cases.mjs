// The answers of a verifier to cases of the conformance corpus, in Node and in a browser alike: it uses nothing of either.

/** The answer to each case, in their order. `verifier` has the names that verify.mjs exports. */
export async function answerCases(verifier, cases) {
  const { BadInput, ChainJudge, Passkey, PublicKey, Ring, Sealed } = verifier;
  const ed25519 = await verifier.openEd25519();
  const seal = { hash: "", signature: "", signature_pq: "", signed_at: "", signed_by: "" };
  const hash = (text) => new Sealed(text, seal).computedHash;
  const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));
  const answers = {
    canonical({ input, canonical }) {
      const value = verifier.readJson(input);
      const forms = value instanceof Map ? [...verifier.splitOffKeys(input, []).forms()] : [verifier.canonicalJson(value)];
      return [forms.includes(canonical), hash(canonical), verifier.canonicalJson(verifier.readJson(canonical)) === canonical];
    },
    read({ hex }) {
      try {
        return verifier.readRecord(new Sealed(verifier.decodeUtf8(bytesOf(hex)), seal)).content.has("id");
      } catch (error) {
        if (error instanceof BadInput) return error.code;
        throw error;
      }
    },
    stored({ canonical }) {
      return [verifier.readRecord(new Sealed(canonical, seal)).isCanonical, hash(canonical)];
    },
    seal({ sealed, keys, requirePq }) {
      const ring = new Ring(keys.map((key) => new PublicKey(key.ed25519, key.ml_dsa_65 ?? "")));
      const judge = new ChainJudge(verifier.plainRules(ring, ed25519, { requirePq }), { start: null });
      try {
        judge.judge(verifier.sealedFromJson(sealed));
      } catch (error) {
        if (!(error instanceof BadInput)) throw error;
        judge.unreadable(error);
      }
      const verdict = verifier.conclude("case", judge.finish());
      return [verdict.status, ...verdict.findings.map((finding) => finding.code)];
    },
    async ed25519({ public: publicHex, message, signature }) {
      await ed25519.prefetch([{ publicHex, message, signature }]);
      const byPoints = verifier.holdsByPoints(publicHex, new TextEncoder().encode(message), signature);
      return [ed25519.usesPlatform, ed25519.verify(publicHex, message, signature), byPoints];
    },
    passkey({ purpose, content, passkey, signature }) {
      const message = verifier.statementBytes(purpose, verifier.readJson(JSON.stringify(content)));
      const key = new Passkey(verifier.readJson(JSON.stringify(passkey)), "case");
      return verifier.passkeyProblem(key, message, signature, ed25519) === null;
    },
  };
  const given = [];
  for (const one of cases) given.push(await answers[one.sort](one));
  return given;
}
