-- How names compare, as `src/names.ts` has it: compatible characters are one (NFKC), case is folded by Unicode's table and
-- not by the locale of the database, and blanks count once and not at the ends. A test compares both over all characters.
-- Another table of letters needs another function and other indexes: what an index holds was computed by this one.
-- The server reads the letters when it folds the first one: one of another encoding never does.
SET LOCAL check_function_bodies = off;
CREATE FUNCTION compared_name(name text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  letters text;
BEGIN
  IF octet_length(name) = char_length(name) THEN
    letters := lower(translate(name, E'\t\n\v\f\r', '     ') COLLATE "C");
  ELSIF getdatabaseencoding() <> 'UTF8' THEN
    letters := lower(name);
  ELSE
    letters := replace(replace(normalize(name, NFKD), E'\u00df', 'ss'), E'\u1e9e', 'ss');
    letters := normalize(lower(translate(letters,
    E'\u00c6\u00d0\u00d8\u00de\u0110\u0126\u0141\u014a\u0152\u0166\u0181\u0182\u0184\u0186\u0187\u0189\u018a\u018b'
     '\u018e\u018f\u0190\u0191\u0193\u0194\u0196\u0197\u0198\u019c\u019d\u019f\u01a2\u01a4\u01a6\u01a7\u01a9\u01ac'
     '\u01ae\u01b1\u01b2\u01b3\u01b5\u01b7\u01b8\u01bc\u01e4\u01f6\u01f7\u021c\u0220\u0222\u0224\u023a\u023b\u023d'
     '\u023e\u0241\u0243\u0244\u0245\u0246\u0248\u024a\u024c\u024e\u0345\u0370\u0372\u0376\u037f\u0391\u0392\u0393'
     '\u0394\u0395\u0396\u0397\u0398\u0399\u039a\u039b\u039c\u039d\u039e\u039f\u03a0\u03a1\u03a3\u03a4\u03a5\u03a6'
     '\u03a7\u03a8\u03a9\u03c2\u03cf\u03d8\u03da\u03dc\u03de\u03e0\u03e2\u03e4\u03e6\u03e8\u03ea\u03ec\u03ee\u03f7'
     '\u03fa\u03fd\u03fe\u03ff\u0402\u0404\u0405\u0406\u0408\u0409\u040a\u040b\u040f\u0410\u0411\u0412\u0413\u0414'
     '\u0415\u0416\u0417\u0418\u041a\u041b\u041c\u041d\u041e\u041f\u0420\u0421\u0422\u0423\u0424\u0425\u0426\u0427'
     '\u0428\u0429\u042a\u042b\u042c\u042d\u042e\u042f\u0460\u0462\u0464\u0466\u0468\u046a\u046c\u046e\u0470\u0472'
     '\u0474\u0478\u047a\u047c\u047e\u0480\u048a\u048c\u048e\u0490\u0492\u0494\u0496\u0498\u049a\u049c\u049e\u04a0'
     '\u04a2\u04a4\u04a6\u04a8\u04aa\u04ac\u04ae\u04b0\u04b2\u04b4\u04b6\u04b8\u04ba\u04bc\u04be\u04c0\u04c3\u04c5'
     '\u04c7\u04c9\u04cb\u04cd\u04d4\u04d8\u04e0\u04e8\u04f6\u04fa\u04fc\u04fe\u0500\u0502\u0504\u0506\u0508\u050a'
     '\u050c\u050e\u0510\u0512\u0514\u0516\u0518\u051a\u051c\u051e\u0520\u0522\u0524\u0526\u0528\u052a\u052c\u052e'
     '\u0531\u0532\u0533\u0534\u0535\u0536\u0537\u0538\u0539\u053a\u053b\u053c\u053d\u053e\u053f\u0540\u0541\u0542'
     '\u0543\u0544\u0545\u0546\u0547\u0548\u0549\u054a\u054b\u054c\u054d\u054e\u054f\u0550\u0551\u0552\u0553\u0554'
     '\u0555\u0556\u10a0\u10a1\u10a2\u10a3\u10a4\u10a5\u10a6\u10a7\u10a8\u10a9\u10aa\u10ab\u10ac\u10ad\u10ae\u10af'
     '\u10b0\u10b1\u10b2\u10b3\u10b4\u10b5\u10b6\u10b7\u10b8\u10b9\u10ba\u10bb\u10bc\u10bd\u10be\u10bf\u10c0\u10c1'
     '\u10c2\u10c3\u10c4\u10c5\u10c7\u10cd\u13a0\u13a1\u13a2\u13a3\u13a4\u13a5\u13a6\u13a7\u13a8\u13a9\u13aa\u13ab'
     '\u13ac\u13ad\u13ae\u13af\u13b0\u13b1\u13b2\u13b3\u13b4\u13b5\u13b6\u13b7\u13b8\u13b9\u13ba\u13bb\u13bc\u13bd'
     '\u13be\u13bf\u13c0\u13c1\u13c2\u13c3\u13c4\u13c5\u13c6\u13c7\u13c8\u13c9\u13ca\u13cb\u13cc\u13cd\u13ce\u13cf'
     '\u13d0\u13d1\u13d2\u13d3\u13d4\u13d5\u13d6\u13d7\u13d8\u13d9\u13da\u13db\u13dc\u13dd\u13de\u13df\u13e0\u13e1'
     '\u13e2\u13e3\u13e4\u13e5\u13e6\u13e7\u13e8\u13e9\u13ea\u13eb\u13ec\u13ed\u13ee\u13ef\u13f0\u13f1\u13f2\u13f3'
     '\u13f4\u13f5\u1c80\u1c81\u1c82\u1c83\u1c84\u1c85\u1c86\u1c87\u1c88\u1c89\u1c90\u1c91\u1c92\u1c93\u1c94\u1c95'
     '\u1c96\u1c97\u1c98\u1c99\u1c9a\u1c9b\u1c9c\u1c9d\u1c9e\u1c9f\u1ca0\u1ca1\u1ca2\u1ca3\u1ca4\u1ca5\u1ca6\u1ca7'
     '\u1ca8\u1ca9\u1caa\u1cab\u1cac\u1cad\u1cae\u1caf\u1cb0\u1cb1\u1cb2\u1cb3\u1cb4\u1cb5\u1cb6\u1cb7\u1cb8\u1cb9'
     '\u1cba\u1cbd\u1cbe\u1cbf\u1efa\u1efc\u1efe\u2132\u2183\u2c00\u2c01\u2c02\u2c03\u2c04\u2c05\u2c06\u2c07\u2c08'
     '\u2c09\u2c0a\u2c0b\u2c0c\u2c0d\u2c0e\u2c0f\u2c10\u2c11\u2c12\u2c13\u2c14\u2c15\u2c16\u2c17\u2c18\u2c19\u2c1a'
     '\u2c1b\u2c1c\u2c1d\u2c1e\u2c1f\u2c20\u2c21\u2c22\u2c23\u2c24\u2c25\u2c26\u2c27\u2c28\u2c29\u2c2a\u2c2b\u2c2c'
     '\u2c2d\u2c2e\u2c2f\u2c60\u2c62\u2c63\u2c64\u2c67\u2c69\u2c6b\u2c6d\u2c6e\u2c6f\u2c70\u2c72\u2c75\u2c7e\u2c7f'
     '\u2c80\u2c82\u2c84\u2c86\u2c88\u2c8a\u2c8c\u2c8e\u2c90\u2c92\u2c94\u2c96\u2c98\u2c9a\u2c9c\u2c9e\u2ca0\u2ca2'
     '\u2ca4\u2ca6\u2ca8\u2caa\u2cac\u2cae\u2cb0\u2cb2\u2cb4\u2cb6\u2cb8\u2cba\u2cbc\u2cbe\u2cc0\u2cc2\u2cc4\u2cc6'
     '\u2cc8\u2cca\u2ccc\u2cce\u2cd0\u2cd2\u2cd4\u2cd6\u2cd8\u2cda\u2cdc\u2cde\u2ce0\u2ce2\u2ceb\u2ced\u2cf2\ua640'
     '\ua642\ua644\ua646\ua648\ua64a\ua64c\ua64e\ua650\ua652\ua654\ua656\ua658\ua65a\ua65c\ua65e\ua660\ua662\ua664'
     '\ua666\ua668\ua66a\ua66c\ua680\ua682\ua684\ua686\ua688\ua68a\ua68c\ua68e\ua690\ua692\ua694\ua696\ua698\ua69a'
     '\ua722\ua724\ua726\ua728\ua72a\ua72c\ua72e\ua732\ua734\ua736\ua738\ua73a\ua73c\ua73e\ua740\ua742\ua744\ua746'
     '\ua748\ua74a\ua74c\ua74e\ua750\ua752\ua754\ua756\ua758\ua75a\ua75c\ua75e\ua760\ua762\ua764\ua766\ua768\ua76a'
     '\ua76c\ua76e\ua779\ua77b\ua77d\ua77e\ua780\ua782\ua784\ua786\ua78b\ua78d\ua790\ua792\ua796\ua798\ua79a\ua79c'
     '\ua79e\ua7a0\ua7a2\ua7a4\ua7a6\ua7a8\ua7aa\ua7ab\ua7ac\ua7ad\ua7ae\ua7b0\ua7b1\ua7b2\ua7b3\ua7b4\ua7b6\ua7b8'
     '\ua7ba\ua7bc\ua7be\ua7c0\ua7c2\ua7c4\ua7c5\ua7c6\ua7c7\ua7c9\ua7cb\ua7cc\ua7ce\ua7d0\ua7d2\ua7d4\ua7d6\ua7d8'
     '\ua7da\ua7dc\ua7f5\U00010400\U00010401\U00010402\U00010403\U00010404\U00010405\U00010406\U00010407\U00010408\U00010409\U0001040a\U0001040b\U0001040c\U0001040d\U0001040e'
     '\U0001040f\U00010410\U00010411\U00010412\U00010413\U00010414\U00010415\U00010416\U00010417\U00010418\U00010419\U0001041a\U0001041b\U0001041c\U0001041d\U0001041e\U0001041f\U00010420'
     '\U00010421\U00010422\U00010423\U00010424\U00010425\U00010426\U00010427\U000104b0\U000104b1\U000104b2\U000104b3\U000104b4\U000104b5\U000104b6\U000104b7\U000104b8\U000104b9\U000104ba'
     '\U000104bb\U000104bc\U000104bd\U000104be\U000104bf\U000104c0\U000104c1\U000104c2\U000104c3\U000104c4\U000104c5\U000104c6\U000104c7\U000104c8\U000104c9\U000104ca\U000104cb\U000104cc'
     '\U000104cd\U000104ce\U000104cf\U000104d0\U000104d1\U000104d2\U000104d3\U00010570\U00010571\U00010572\U00010573\U00010574\U00010575\U00010576\U00010577\U00010578\U00010579\U0001057a'
     '\U0001057c\U0001057d\U0001057e\U0001057f\U00010580\U00010581\U00010582\U00010583\U00010584\U00010585\U00010586\U00010587\U00010588\U00010589\U0001058a\U0001058c\U0001058d\U0001058e'
     '\U0001058f\U00010590\U00010591\U00010592\U00010594\U00010595\U00010c80\U00010c81\U00010c82\U00010c83\U00010c84\U00010c85\U00010c86\U00010c87\U00010c88\U00010c89\U00010c8a\U00010c8b'
     '\U00010c8c\U00010c8d\U00010c8e\U00010c8f\U00010c90\U00010c91\U00010c92\U00010c93\U00010c94\U00010c95\U00010c96\U00010c97\U00010c98\U00010c99\U00010c9a\U00010c9b\U00010c9c\U00010c9d'
     '\U00010c9e\U00010c9f\U00010ca0\U00010ca1\U00010ca2\U00010ca3\U00010ca4\U00010ca5\U00010ca6\U00010ca7\U00010ca8\U00010ca9\U00010caa\U00010cab\U00010cac\U00010cad\U00010cae\U00010caf'
     '\U00010cb0\U00010cb1\U00010cb2\U00010d50\U00010d51\U00010d52\U00010d53\U00010d54\U00010d55\U00010d56\U00010d57\U00010d58\U00010d59\U00010d5a\U00010d5b\U00010d5c\U00010d5d\U00010d5e'
     '\U00010d5f\U00010d60\U00010d61\U00010d62\U00010d63\U00010d64\U00010d65\U000118a0\U000118a1\U000118a2\U000118a3\U000118a4\U000118a5\U000118a6\U000118a7\U000118a8\U000118a9\U000118aa'
     '\U000118ab\U000118ac\U000118ad\U000118ae\U000118af\U000118b0\U000118b1\U000118b2\U000118b3\U000118b4\U000118b5\U000118b6\U000118b7\U000118b8\U000118b9\U000118ba\U000118bb\U000118bc'
     '\U000118bd\U000118be\U000118bf\U00016e40\U00016e41\U00016e42\U00016e43\U00016e44\U00016e45\U00016e46\U00016e47\U00016e48\U00016e49\U00016e4a\U00016e4b\U00016e4c\U00016e4d\U00016e4e'
     '\U00016e4f\U00016e50\U00016e51\U00016e52\U00016e53\U00016e54\U00016e55\U00016e56\U00016e57\U00016e58\U00016e59\U00016e5a\U00016e5b\U00016e5c\U00016e5d\U00016e5e\U00016e5f\U00016ea0'
     '\U00016ea1\U00016ea2\U00016ea3\U00016ea4\U00016ea5\U00016ea6\U00016ea7\U00016ea8\U00016ea9\U00016eaa\U00016eab\U00016eac\U00016ead\U00016eae\U00016eaf\U00016eb0\U00016eb1\U00016eb2'
     '\U00016eb3\U00016eb4\U00016eb5\U00016eb6\U00016eb7\U00016eb8\U0001e900\U0001e901\U0001e902\U0001e903\U0001e904\U0001e905\U0001e906\U0001e907\U0001e908\U0001e909\U0001e90a\U0001e90b'
     '\U0001e90c\U0001e90d\U0001e90e\U0001e90f\U0001e910\U0001e911\U0001e912\U0001e913\U0001e914\U0001e915\U0001e916\U0001e917\U0001e918\U0001e919\U0001e91a\U0001e91b\U0001e91c\U0001e91d'
     '\U0001e91e\U0001e91f\U0001e920\U0001e921\u0009\u000a\u000b\u000c\u000d\u0085\u1680\u2028\u2029',
    E'\u00e6\u00f0\u00f8\u00fe\u0111\u0127\u0142\u014b\u0153\u0167\u0253\u0183\u0185\u0254\u0188\u0256\u0257\u018c'
     '\u01dd\u0259\u025b\u0192\u0260\u0263\u0269\u0268\u0199\u026f\u0272\u0275\u01a3\u01a5\u0280\u01a8\u0283\u01ad'
     '\u0288\u028a\u028b\u01b4\u01b6\u0292\u01b9\u01bd\u01e5\u0195\u01bf\u021d\u019e\u0223\u0225\u2c65\u023c\u019a'
     '\u2c66\u0242\u0180\u0289\u028c\u0247\u0249\u024b\u024d\u024f\u03b9\u0371\u0373\u0377\u03f3\u03b1\u03b2\u03b3'
     '\u03b4\u03b5\u03b6\u03b7\u03b8\u03b9\u03ba\u03bb\u03bc\u03bd\u03be\u03bf\u03c0\u03c1\u03c3\u03c4\u03c5\u03c6'
     '\u03c7\u03c8\u03c9\u03c3\u03d7\u03d9\u03db\u03dd\u03df\u03e1\u03e3\u03e5\u03e7\u03e9\u03eb\u03ed\u03ef\u03f8'
     '\u03fb\u037b\u037c\u037d\u0452\u0454\u0455\u0456\u0458\u0459\u045a\u045b\u045f\u0430\u0431\u0432\u0433\u0434'
     '\u0435\u0436\u0437\u0438\u043a\u043b\u043c\u043d\u043e\u043f\u0440\u0441\u0442\u0443\u0444\u0445\u0446\u0447'
     '\u0448\u0449\u044a\u044b\u044c\u044d\u044e\u044f\u0461\u0463\u0465\u0467\u0469\u046b\u046d\u046f\u0471\u0473'
     '\u0475\u0479\u047b\u047d\u047f\u0481\u048b\u048d\u048f\u0491\u0493\u0495\u0497\u0499\u049b\u049d\u049f\u04a1'
     '\u04a3\u04a5\u04a7\u04a9\u04ab\u04ad\u04af\u04b1\u04b3\u04b5\u04b7\u04b9\u04bb\u04bd\u04bf\u04cf\u04c4\u04c6'
     '\u04c8\u04ca\u04cc\u04ce\u04d5\u04d9\u04e1\u04e9\u04f7\u04fb\u04fd\u04ff\u0501\u0503\u0505\u0507\u0509\u050b'
     '\u050d\u050f\u0511\u0513\u0515\u0517\u0519\u051b\u051d\u051f\u0521\u0523\u0525\u0527\u0529\u052b\u052d\u052f'
     '\u0561\u0562\u0563\u0564\u0565\u0566\u0567\u0568\u0569\u056a\u056b\u056c\u056d\u056e\u056f\u0570\u0571\u0572'
     '\u0573\u0574\u0575\u0576\u0577\u0578\u0579\u057a\u057b\u057c\u057d\u057e\u057f\u0580\u0581\u0582\u0583\u0584'
     '\u0585\u0586\u2d00\u2d01\u2d02\u2d03\u2d04\u2d05\u2d06\u2d07\u2d08\u2d09\u2d0a\u2d0b\u2d0c\u2d0d\u2d0e\u2d0f'
     '\u2d10\u2d11\u2d12\u2d13\u2d14\u2d15\u2d16\u2d17\u2d18\u2d19\u2d1a\u2d1b\u2d1c\u2d1d\u2d1e\u2d1f\u2d20\u2d21'
     '\u2d22\u2d23\u2d24\u2d25\u2d27\u2d2d\uab70\uab71\uab72\uab73\uab74\uab75\uab76\uab77\uab78\uab79\uab7a\uab7b'
     '\uab7c\uab7d\uab7e\uab7f\uab80\uab81\uab82\uab83\uab84\uab85\uab86\uab87\uab88\uab89\uab8a\uab8b\uab8c\uab8d'
     '\uab8e\uab8f\uab90\uab91\uab92\uab93\uab94\uab95\uab96\uab97\uab98\uab99\uab9a\uab9b\uab9c\uab9d\uab9e\uab9f'
     '\uaba0\uaba1\uaba2\uaba3\uaba4\uaba5\uaba6\uaba7\uaba8\uaba9\uabaa\uabab\uabac\uabad\uabae\uabaf\uabb0\uabb1'
     '\uabb2\uabb3\uabb4\uabb5\uabb6\uabb7\uabb8\uabb9\uabba\uabbb\uabbc\uabbd\uabbe\uabbf\u13f8\u13f9\u13fa\u13fb'
     '\u13fc\u13fd\u0432\u0434\u043e\u0441\u0442\u0442\u044a\u0463\ua64b\u1c8a\u10d0\u10d1\u10d2\u10d3\u10d4\u10d5'
     '\u10d6\u10d7\u10d8\u10d9\u10da\u10db\u10dc\u10dd\u10de\u10df\u10e0\u10e1\u10e2\u10e3\u10e4\u10e5\u10e6\u10e7'
     '\u10e8\u10e9\u10ea\u10eb\u10ec\u10ed\u10ee\u10ef\u10f0\u10f1\u10f2\u10f3\u10f4\u10f5\u10f6\u10f7\u10f8\u10f9'
     '\u10fa\u10fd\u10fe\u10ff\u1efb\u1efd\u1eff\u214e\u2184\u2c30\u2c31\u2c32\u2c33\u2c34\u2c35\u2c36\u2c37\u2c38'
     '\u2c39\u2c3a\u2c3b\u2c3c\u2c3d\u2c3e\u2c3f\u2c40\u2c41\u2c42\u2c43\u2c44\u2c45\u2c46\u2c47\u2c48\u2c49\u2c4a'
     '\u2c4b\u2c4c\u2c4d\u2c4e\u2c4f\u2c50\u2c51\u2c52\u2c53\u2c54\u2c55\u2c56\u2c57\u2c58\u2c59\u2c5a\u2c5b\u2c5c'
     '\u2c5d\u2c5e\u2c5f\u2c61\u026b\u1d7d\u027d\u2c68\u2c6a\u2c6c\u0251\u0271\u0250\u0252\u2c73\u2c76\u023f\u0240'
     '\u2c81\u2c83\u2c85\u2c87\u2c89\u2c8b\u2c8d\u2c8f\u2c91\u2c93\u2c95\u2c97\u2c99\u2c9b\u2c9d\u2c9f\u2ca1\u2ca3'
     '\u2ca5\u2ca7\u2ca9\u2cab\u2cad\u2caf\u2cb1\u2cb3\u2cb5\u2cb7\u2cb9\u2cbb\u2cbd\u2cbf\u2cc1\u2cc3\u2cc5\u2cc7'
     '\u2cc9\u2ccb\u2ccd\u2ccf\u2cd1\u2cd3\u2cd5\u2cd7\u2cd9\u2cdb\u2cdd\u2cdf\u2ce1\u2ce3\u2cec\u2cee\u2cf3\ua641'
     '\ua643\ua645\ua647\ua649\ua64b\ua64d\ua64f\ua651\ua653\ua655\ua657\ua659\ua65b\ua65d\ua65f\ua661\ua663\ua665'
     '\ua667\ua669\ua66b\ua66d\ua681\ua683\ua685\ua687\ua689\ua68b\ua68d\ua68f\ua691\ua693\ua695\ua697\ua699\ua69b'
     '\ua723\ua725\ua727\ua729\ua72b\ua72d\ua72f\ua733\ua735\ua737\ua739\ua73b\ua73d\ua73f\ua741\ua743\ua745\ua747'
     '\ua749\ua74b\ua74d\ua74f\ua751\ua753\ua755\ua757\ua759\ua75b\ua75d\ua75f\ua761\ua763\ua765\ua767\ua769\ua76b'
     '\ua76d\ua76f\ua77a\ua77c\u1d79\ua77f\ua781\ua783\ua785\ua787\ua78c\u0265\ua791\ua793\ua797\ua799\ua79b\ua79d'
     '\ua79f\ua7a1\ua7a3\ua7a5\ua7a7\ua7a9\u0266\u025c\u0261\u026c\u026a\u029e\u0287\u029d\uab53\ua7b5\ua7b7\ua7b9'
     '\ua7bb\ua7bd\ua7bf\ua7c1\ua7c3\ua794\u0282\u1d8e\ua7c8\ua7ca\u0264\ua7cd\ua7cf\ua7d1\ua7d3\ua7d5\ua7d7\ua7d9'
     '\ua7db\u019b\ua7f6\U00010428\U00010429\U0001042a\U0001042b\U0001042c\U0001042d\U0001042e\U0001042f\U00010430\U00010431\U00010432\U00010433\U00010434\U00010435\U00010436'
     '\U00010437\U00010438\U00010439\U0001043a\U0001043b\U0001043c\U0001043d\U0001043e\U0001043f\U00010440\U00010441\U00010442\U00010443\U00010444\U00010445\U00010446\U00010447\U00010448'
     '\U00010449\U0001044a\U0001044b\U0001044c\U0001044d\U0001044e\U0001044f\U000104d8\U000104d9\U000104da\U000104db\U000104dc\U000104dd\U000104de\U000104df\U000104e0\U000104e1\U000104e2'
     '\U000104e3\U000104e4\U000104e5\U000104e6\U000104e7\U000104e8\U000104e9\U000104ea\U000104eb\U000104ec\U000104ed\U000104ee\U000104ef\U000104f0\U000104f1\U000104f2\U000104f3\U000104f4'
     '\U000104f5\U000104f6\U000104f7\U000104f8\U000104f9\U000104fa\U000104fb\U00010597\U00010598\U00010599\U0001059a\U0001059b\U0001059c\U0001059d\U0001059e\U0001059f\U000105a0\U000105a1'
     '\U000105a3\U000105a4\U000105a5\U000105a6\U000105a7\U000105a8\U000105a9\U000105aa\U000105ab\U000105ac\U000105ad\U000105ae\U000105af\U000105b0\U000105b1\U000105b3\U000105b4\U000105b5'
     '\U000105b6\U000105b7\U000105b8\U000105b9\U000105bb\U000105bc\U00010cc0\U00010cc1\U00010cc2\U00010cc3\U00010cc4\U00010cc5\U00010cc6\U00010cc7\U00010cc8\U00010cc9\U00010cca\U00010ccb'
     '\U00010ccc\U00010ccd\U00010cce\U00010ccf\U00010cd0\U00010cd1\U00010cd2\U00010cd3\U00010cd4\U00010cd5\U00010cd6\U00010cd7\U00010cd8\U00010cd9\U00010cda\U00010cdb\U00010cdc\U00010cdd'
     '\U00010cde\U00010cdf\U00010ce0\U00010ce1\U00010ce2\U00010ce3\U00010ce4\U00010ce5\U00010ce6\U00010ce7\U00010ce8\U00010ce9\U00010cea\U00010ceb\U00010cec\U00010ced\U00010cee\U00010cef'
     '\U00010cf0\U00010cf1\U00010cf2\U00010d70\U00010d71\U00010d72\U00010d73\U00010d74\U00010d75\U00010d76\U00010d77\U00010d78\U00010d79\U00010d7a\U00010d7b\U00010d7c\U00010d7d\U00010d7e'
     '\U00010d7f\U00010d80\U00010d81\U00010d82\U00010d83\U00010d84\U00010d85\U000118c0\U000118c1\U000118c2\U000118c3\U000118c4\U000118c5\U000118c6\U000118c7\U000118c8\U000118c9\U000118ca'
     '\U000118cb\U000118cc\U000118cd\U000118ce\U000118cf\U000118d0\U000118d1\U000118d2\U000118d3\U000118d4\U000118d5\U000118d6\U000118d7\U000118d8\U000118d9\U000118da\U000118db\U000118dc'
     '\U000118dd\U000118de\U000118df\U00016e60\U00016e61\U00016e62\U00016e63\U00016e64\U00016e65\U00016e66\U00016e67\U00016e68\U00016e69\U00016e6a\U00016e6b\U00016e6c\U00016e6d\U00016e6e'
     '\U00016e6f\U00016e70\U00016e71\U00016e72\U00016e73\U00016e74\U00016e75\U00016e76\U00016e77\U00016e78\U00016e79\U00016e7a\U00016e7b\U00016e7c\U00016e7d\U00016e7e\U00016e7f\U00016ebb'
     '\U00016ebc\U00016ebd\U00016ebe\U00016ebf\U00016ec0\U00016ec1\U00016ec2\U00016ec3\U00016ec4\U00016ec5\U00016ec6\U00016ec7\U00016ec8\U00016ec9\U00016eca\U00016ecb\U00016ecc\U00016ecd'
     '\U00016ece\U00016ecf\U00016ed0\U00016ed1\U00016ed2\U00016ed3\U0001e922\U0001e923\U0001e924\U0001e925\U0001e926\U0001e927\U0001e928\U0001e929\U0001e92a\U0001e92b\U0001e92c\U0001e92d'
     '\U0001e92e\U0001e92f\U0001e930\U0001e931\U0001e932\U0001e933\U0001e934\U0001e935\U0001e936\U0001e937\U0001e938\U0001e939\U0001e93a\U0001e93b\U0001e93c\U0001e93d\U0001e93e\U0001e93f'
     '\U0001e940\U0001e941\U0001e942\U0001e943         ') COLLATE "C"), NFKC);
  END IF;
  RETURN btrim(regexp_replace(letters, ' {2,}', ' ', 'g'), ' ');
END $$;

CREATE INDEX "roles_name_compared" ON "roles" (compared_name("name"));
CREATE INDEX "flows_slug_compared" ON "flows" (compared_name("slug"));
CREATE INDEX "certificate_key_pairs_name_compared" ON "certificate_key_pairs" (compared_name("name"));
CREATE INDEX "applications_slug_compared" ON "applications" (compared_name("slug"));
CREATE INDEX "providers_name_compared" ON "providers" (compared_name("name"));
DROP INDEX "roles_name_folded";
DROP INDEX "applications_slug_folded";
DROP INDEX "providers_name_folded";
DROP INDEX "flows_slug_folded";
DROP INDEX "certificate_key_pairs_name_folded";

-- What each document and request did to which object: an application is found with all that changed it. A row belongs to
-- its audit row, which says who did it, and is deleted with it.
CREATE TABLE "run_objects" (
    "audit_pk" BIGINT NOT NULL,
    "position" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "run_id" UUID,
    "model" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "was" TEXT,
    "owner" TEXT,
    "action" TEXT NOT NULL,
    "change" INTEGER,
    "fields" JSONB,
    -- What the object was like when its change was recorded. Null for what an earlier version wrote.
    "digest" TEXT,

    CONSTRAINT "run_objects_pkey" PRIMARY KEY ("audit_pk", "position"),
    CONSTRAINT "run_objects_action" CHECK ("action" IN ('create', 'update', 'delete'))
);
CREATE INDEX "run_objects_model_key_audit_pk_idx" ON "run_objects"("model", "key", "audit_pk");
CREATE INDEX "run_objects_model_name_idx" ON "run_objects"("model", "name");
-- Renames are few.
CREATE INDEX "run_objects_renamed" ON "run_objects"("model", "was") WHERE "was" IS NOT NULL;

-- What was changed past the service, as of the last look of a worker.
CREATE TABLE "outside_changes" (
    "model" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "is_deleted" BOOLEAN NOT NULL,
    "found_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "outside_changes_pkey" PRIMARY KEY ("model","key")
);

-- All columns but the time of creation. Replaced secrets are left out, because a worker deletes them when their overlap ends.
CREATE FUNCTION object_state(a applications) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT to_jsonb(a) - 'created_at' || jsonb_build_object('backchannel_providers',
    (SELECT jsonb_agg(b.provider_pk ORDER BY b.provider_pk) FROM backchannel_providers b WHERE b.application_pk = a.pk))
$$;
CREATE FUNCTION object_state(p providers) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT to_jsonb(p) - 'created_at' || jsonb_build_object(
    'settings', (SELECT jsonb_object_agg(k, v) FROM jsonb_each(p.settings) AS s(k, v) WHERE k NOT LIKE 'previous\_%'),
    'secrets', (SELECT jsonb_object_agg(k, v) FROM jsonb_each(p.secrets) AS s(k, v) WHERE k NOT LIKE 'previous\_%'))
$$;

-- Two digests can be compared when their first eight characters are equal: the key and the columns are the same.
CREATE FUNCTION object_digest(key bytea, state jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT left(md5(encode(key, 'hex') || (SELECT string_agg(c, ',' ORDER BY c) FROM jsonb_object_keys(state) AS c)), 8)
    || left(encode(sha256(key || convert_to(state::text, 'UTF8')), 'base64'), 22)
$$;

-- Each worker process, with when it was last heard.
CREATE TABLE "workers" (
    "id" UUID NOT NULL,
    "host" VARCHAR(255) NOT NULL,
    "process_id" INTEGER NOT NULL,
    "version" VARCHAR(100) NOT NULL,
    "format" SMALLINT NOT NULL,
    "slots" INTEGER NOT NULL,
    "busy" INTEGER NOT NULL DEFAULT 0,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "taken_at" TIMESTAMPTZ(3),
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),

    CONSTRAINT "workers_pkey" PRIMARY KEY ("id")
);

-- Each process of the API, likewise.
CREATE TABLE "servers" (
    "id" UUID NOT NULL,
    "host" VARCHAR(255) NOT NULL,
    "process_id" INTEGER NOT NULL,
    "version" VARCHAR(100) NOT NULL,
    "format" SMALLINT NOT NULL,
    "slots" INTEGER NOT NULL,
    "busy" INTEGER NOT NULL DEFAULT 0,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "taken_at" TIMESTAMPTZ(3),
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),

    CONSTRAINT "servers_pkey" PRIMARY KEY ("id")
);

-- What all processes have counted of runs since the installation, for the metrics.
CREATE TABLE "metric_sums" (
    "series" VARCHAR(200) NOT NULL,
    "value" DOUBLE PRECISION NOT NULL,

    CONSTRAINT "metric_sums_pkey" PRIMARY KEY ("series")
);

-- The last submissions that were refused before they were recorded. It stays small: the oldest go.
CREATE TABLE "refusals" (
    "pk" BIGSERIAL NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "route" TEXT NOT NULL,
    "code" TEXT NOT NULL,
    "status" SMALLINT NOT NULL,
    "user_pk" INTEGER,
    "username" TEXT,
    "request_id" TEXT NOT NULL,
    "title" TEXT,
    "sentence" TEXT NOT NULL,

    CONSTRAINT "refusals_pkey" PRIMARY KEY ("pk")
);

-- What became of the submissions of each minute, hour and day, for plots of more than an hour. Maintenance folds runs into
-- it, and it outlives them (docs/adr/0068-plots-read-folded-runs.md).
CREATE TABLE "run_sums" (
    "step_s" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "series" VARCHAR(20) NOT NULL,
    "bucket" SMALLINT NOT NULL,
    "runs" INTEGER NOT NULL,

    CONSTRAINT "run_sums_pkey" PRIMARY KEY ("step_s", "at", "series", "bucket")
);

-- Until when runs are folded: one row.
CREATE TABLE "run_folds" (
    "singleton" BOOLEAN NOT NULL DEFAULT true,
    "until" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "run_folds_pkey" PRIMARY KEY ("singleton"),
    CONSTRAINT "run_folds_singleton" CHECK ("singleton")
);
INSERT INTO "run_folds" ("until")
    SELECT date_bin('1 minute', coalesce(min("created_at"), now()), 'epoch') FROM "runs";

-- What others wait for stands last, in the order in which they lock it.

-- The owners to which a token is bound, as it was created: its ceiling has what that leaves.
ALTER TABLE "tokens" ADD COLUMN "owners" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- The owners for whose rows the permissions of a role hold; none: all. `rights` is what the role gives: permissions for
-- applications and providers are bound to each owner. `rightsOf` in src/permissions.ts says the same.
CREATE FUNCTION "role_rights"(permissions TEXT[], owners TEXT[]) RETURNS TEXT[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN coalesce(cardinality(owners), 0) = 0 THEN permissions ELSE ARRAY(
    SELECT p FROM unnest(permissions) p WHERE p !~ '^(view|add|change|delete)_(application|.*provider)$'
    UNION ALL SELECT p || '@' || o FROM unnest(permissions) p, unnest(owners) o
      WHERE p ~ '^(view|add|change|delete)_(application|.*provider)$') END
$$;
ALTER TABLE "roles" ADD COLUMN "owners" TEXT[] DEFAULT ARRAY[]::TEXT[];
ALTER TABLE "roles" ADD COLUMN "rights" TEXT[] GENERATED ALWAYS AS ("role_rights"("permissions", "owners")) STORED;

-- Why the queue is paused, as the operator says it.
ALTER TABLE "queue_pauses" ADD COLUMN "reason" VARCHAR(200);

-- How far the audit rows of earlier versions have been carried over (src/runs/history-fill.ts). When a worker looked for what
-- was changed past the service, and the oldest transaction that was not over then.
ALTER TABLE "installation" ADD COLUMN "history_filled" BIGINT NOT NULL DEFAULT 0,
ADD COLUMN "history_fill_until" TIMESTAMPTZ(3) DEFAULT now() + interval '1 day',
ADD COLUMN "outside_checked_at" TIMESTAMPTZ(3),
ADD COLUMN "outside_after" BIGINT;

-- Each attempt of a run that ended without a result. Where it stands in the order in which readers see commits: as below.
CREATE TABLE "run_attempts" (
    "run_id" UUID NOT NULL,
    "attempt" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "cause" VARCHAR(300) NOT NULL,
    "recorded_in" BIGINT DEFAULT ((pg_current_xact_id())::text)::bigint,
    "recorded_after" BIGINT DEFAULT ((pg_snapshot_xmin(pg_current_snapshot()))::text)::bigint,

    CONSTRAINT "run_attempts_pkey" PRIMARY KEY ("run_id", "attempt")
);
CREATE INDEX "run_attempts_by_record" ON "run_attempts" ("recorded_in") WHERE "recorded_in" IS NOT NULL;

-- What runs that changed nothing have in common: their logs and changes, once (docs/adr/0077-runs-share-what-they-did.md).
-- Runs that exist keep their own.
CREATE TABLE "shared_results" (
    "key" UUID NOT NULL,
    "logs" TEXT[],
    "changes" JSONB NOT NULL,
    "used_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "shared_results_pkey" PRIMARY KEY ("key")
);
CREATE INDEX "shared_results_used_at_idx" ON "shared_results"("used_at");

-- By a trigger: so it holds for every statement that changes a state, those of an earlier version included.
CREATE FUNCTION "keep_position_of_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW."changed_in" := pg_current_xact_id()::text::bigint;
  NEW."changed_after" := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
  RETURN NEW;
END $$;

-- Why a run failed. Where a run and the last change of its state stand in the order in which readers see commits
-- (docs/adr/0067-events-follow-what-is-visible.md): the transaction that wrote it, and the oldest one that was not over
-- then. Runs that exist have no position until their state changes. What a plan reports beside its changes.
ALTER TABLE "runs" ADD COLUMN "cause" VARCHAR(300),
ADD COLUMN "recorded_in" BIGINT,
ADD COLUMN "recorded_after" BIGINT,
ADD COLUMN "changed_in" BIGINT,
ADD COLUMN "changed_after" BIGINT,
ADD COLUMN "shared_result" UUID,
ADD COLUMN "notes" JSONB;
ALTER TABLE "runs" ALTER COLUMN "recorded_in" SET DEFAULT ((pg_current_xact_id())::text)::bigint,
ALTER COLUMN "recorded_after" SET DEFAULT ((pg_snapshot_xmin(pg_current_snapshot()))::text)::bigint,
ALTER COLUMN "changed_in" SET DEFAULT ((pg_current_xact_id())::text)::bigint,
ALTER COLUMN "changed_after" SET DEFAULT ((pg_snapshot_xmin(pg_current_snapshot()))::text)::bigint;
CREATE TRIGGER "runs_have_positions" BEFORE UPDATE OF "state" ON "runs"
  FOR EACH ROW WHEN (OLD."state" IS DISTINCT FROM NEW."state") EXECUTE FUNCTION "keep_position_of_change"();
